"""Adds the options that name inputs, and those that divide inputs into documents.

`open_inputs` opens what they name.
"""

from __future__ import annotations

import argparse
from typing import Any

from . import options
from .argument_types import parse_delimiter, parse_natural
from .options import add_option


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add FILE..., and the options that divide the files into documents."""
    options.add_files(parser)
    group = parser.add_argument_group("inputs and documents (default: each input is one document)")
    add_option(
        group,
        "--glob PATTERN",
        "more files, sorted by name; ** matches any folders",
        default=[],
        action="append",
    )
    kind = group.add_mutually_exclusive_group()
    add_option(kind, "--lines", r"each line is a document, without its \n")
    add_option(
        kind,
        "--delimiter TEXT",
        r"documents are separated by TEXT; escapes: \n \r \t \0 \\ \xHH",
        parse_delimiter,
    )
    add_option(
        kind,
        "--jsonl FIELD",
        "each line is JSON with the text in FIELD, such as a.b or a.0.b; empty lines are ignored",
    )
    add_option(kind, "--parquet COLUMN", "each row of this column is a document")
    add_option(
        group,
        "--skip-bad-lines",
        "skip lines and rows without a text instead of an error; they are counted by reason, "
        "and encode names them in OUTPUT.skipped.jsonl",
    )
    add_option(
        group, "--max-bad-lines N", "skip at most N of them: one more is an error", parse_natural
    )
    add_option(group, "--skip-empty", "skip empty documents")
    add_option(group, "--strip-bom", "remove a leading byte order mark")
    options.add_no_unpack(group)


def add_live_options(parser: argparse.ArgumentParser) -> Any:
    """Add the options of inputs that may never end. Returns their group."""
    group = parser.add_argument_group("live inputs")
    add_option(
        group,
        "--follow",
        "keep reading as FILE grows, is rotated or is truncated, until a signal; rotated files "
        "beside it (FILE.1, FILE-20260101.gz) are read where text is in no other file any more",
    )
    add_option(
        group,
        "--accept-gap",
        "with --follow: if text of the log is lost, say so and continue after the gap, instead of "
        "an error",
    )
    return group
