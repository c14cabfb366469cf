"""The options that `split` and `truncate` share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from . import encoding_options, options
from .options import add_option


def add_budget_options(parser: argparse.ArgumentParser, parse: Callable[[str], int]) -> None:
    """Add -n, which `parse` reads, the options of encodings and text, and those of reading."""
    add_option(
        parser,
        "-n --max-tokens N",
        "the largest number of tokens, such as 512 or 4k",
        parse,
        required=True,
    )
    encoding_options.add_text_options(parser, None)
    encoding_options.add_template(parser)
    reading = parser.add_argument_group("reading")
    options.add_chunk_size(reading)


def budget_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `split` and `truncate`."""
    return encoding_options.text_settings(args) | {"add_special_tokens": args.add_special_tokens}
