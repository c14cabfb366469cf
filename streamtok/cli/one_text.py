"""Reads and writes texts for `show`, `split` and `truncate`: in blocks, with offsets in errors."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import StreamtokError
from ..jobs.sources.blocks import open_blocks
from ..jobs.sources.compression import unpack
from .encoding_options import add_template, add_text_options, text_settings
from .messages import input_name, is_terminal, write_bytes
from .open_inputs import explain, refuse_ids
from .options import FILE_HELP, add_chunk_size, add_option
from .progress import counted, read_bar


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add FILE, an input that may be compressed."""
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help=FILE_HELP,
    )


def add_budget_options(parser: argparse.ArgumentParser, parse: Callable[[str], int]) -> None:
    """Add -n, parsed by `parse`, and the options for the encoding, the text and reading."""
    add_option(
        parser,
        "-n --max-tokens N",
        "the largest number of tokens, such as 512 or 4k",
        parse,
        required=True,
    )
    add_text_options(parser, None)
    add_template(parser)
    add_chunk_size(parser.add_argument_group("reading"))


def budget_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `split` and `truncate`."""
    return text_settings(args) | {"add_special_tokens": args.add_special_tokens}


@contextlib.contextmanager
def open_text(args: argparse.Namespace, path: str) -> Iterator[Iterator[bytes]]:
    """Yield the text of a file, decompressed, as an iterator of blocks.

    Raises OSError, and Refused, with the position, for errors in the text.
    """
    name = input_name(path)
    try:
        refuse_ids(path)
        with read_bar(is_terminal(sys.stdout), "reading", [path]) as add:
            blocks = open_blocks(path, name, size=args.chunk_size, waiting=args.signals.heard)
            yield unpack(counted(blocks, add), name)
    except (StreamtokError, ValueError) as error:
        raise explain(error, name) from None


def written(text: Any, errors: str) -> str:
    """The text of a chunk as a str for JSON. errors: how to decode bytes."""
    return str(text.decode("utf-8", errors)) if isinstance(text, bytes) else str(text)


def write_text(text: Any, end: bytes = b"") -> None:
    """Write a text, bytes or str, and then `end` to standard output."""
    write_bytes((text if isinstance(text, bytes) else text.encode()) + end)
