"""A text as the commands that answer about one read it: in blocks, errors with their place."""

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
    """Add FILE, an input that is decompressed."""
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help=FILE_HELP,
    )


def add_budget_options(parser: argparse.ArgumentParser, parse: Callable[[str], int]) -> None:
    """Add -n, which `parse` reads, the options of encodings and text, and those of reading."""
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
    """The text of a file, decompressed, in blocks as they come.

    Raises Refused, with the position, for what is wrong with the text; OSError.
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
    """The text of a chunk of bytes, as JSON may have it."""
    return str(text.decode("utf-8", errors)) if isinstance(text, bytes) else str(text)


def write_text(text: Any, end: bytes = b"") -> None:
    """Write to standard output as it is; an empty text may be a str."""
    write_bytes((text if isinstance(text, bytes) else text.encode()) + end)
