"""The options that `split` and `truncate` share."""

from __future__ import annotations

import argparse

from . import encoding_options, options
from .argument_types import parse_count


def add_budget_options(parser: argparse.ArgumentParser) -> None:
    """Add -n, the options of encodings and text, and those of reading."""
    parser.add_argument(
        "-n",
        "--max-tokens",
        type=parse_count,
        required=True,
        metavar="N",
        help="the largest number of tokens, such as 512 or 4k",
    )
    encoding_options.add_text_options(parser, None, plain_specials=True)
    reading = parser.add_argument_group("reading")
    options.add_chunk_size(reading)
    options.add_no_unpack(reading)
