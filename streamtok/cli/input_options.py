"""Adds the options that name inputs, and those that divide inputs into documents.

`open_inputs` opens what they name.
"""

from __future__ import annotations

import argparse

from . import options
from .argument_types import parse_delimiter, parse_natural


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add FILE..., and the options that divide the files into documents."""
    options.add_files(parser)
    group = parser.add_argument_group("inputs and documents (default: each input is one document)")
    group.add_argument(
        "--glob",
        action="append",
        default=[],
        metavar="PATTERN",
        help="more files, sorted by name; ** matches any folders",
    )
    kind = group.add_mutually_exclusive_group()
    kind.add_argument(
        "--lines", action="store_true", help=r"each line is a document, without its \n"
    )
    kind.add_argument(
        "--delimiter",
        type=parse_delimiter,
        metavar="TEXT",
        help=r"documents are separated by TEXT; escapes: \n \r \t \0 \\ \xHH",
    )
    kind.add_argument(
        "--jsonl",
        metavar="FIELD",
        help="each line is JSON with the text in FIELD, such as a.b or a.0.b",
    )
    kind.add_argument("--parquet", metavar="COLUMN", help="each row of this column is a document")
    group.add_argument(
        "--skip-bad-lines",
        action="store_true",
        help="skip lines and rows without a text instead of an error; they are counted by reason, "
        "and encode names them in OUTPUT.skipped.jsonl",
    )
    group.add_argument(
        "--max-bad-lines",
        type=parse_natural,
        metavar="N",
        help="skip at most N of them: one more is an error",
    )
    group.add_argument("--skip-empty", action="store_true", help="skip empty documents")
    group.add_argument("--strip-bom", action="store_true", help="remove a leading byte order mark")
    options.add_no_unpack(group)


def add_live_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of inputs that may never end."""
    group = parser.add_argument_group("live inputs")
    group.add_argument(
        "--follow",
        action="store_true",
        help="keep reading as FILE grows, is rotated or truncated, until a signal",
    )
