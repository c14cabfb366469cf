"""Adds subcommands, and the options that several of them share.

The options of encodings and special tokens are in `encoding_options`, those of inputs in
`input_options`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from .argument_types import parse_chunk_size

UNPACKED = "gzip, zstd, xz and bzip2 are decompressed"
FILE_HELP = f"a path, or a URL such as s3://bucket/key; - or none: standard input; {UNPACKED}"
CHUNK_SIZE = 1 << 16  # larger chunks are not faster, and a pipe holds no more at once


def add_command(
    subparsers: Any,
    name: str,
    function: Callable[[argparse.Namespace], int],
    text: str,
    examples: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Add the subcommand `name`, described by `text`. `function` returns its exit code.

    examples: command lines for the end of its help, in which "@" stands for the command.
    """
    lines = "".join(f"  {one.replace('@', f'streamtok {name}', 1)}\n" for one in examples)
    made: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"examples:\n{lines}" if lines else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.set_defaults(command=function)
    return made


def add_option(
    where: argparse._ActionsContainer,
    usage: str,
    text: str,
    parse: Callable[[str], Any] | None = None,
    default: Any = None,
    **more: Any,
) -> None:
    """Add an option to a parser or a group.

    usage: its names and what stands for its value, as in "-o --output FILE"; one without a value
    and without choices is a switch. text: its help. more: as for `add_argument`.
    """
    names = [one for one in usage.split() if one.startswith("-")]
    values = usage.split()[len(names) :]
    if values:
        more["metavar"] = values[0]
    elif not more.keys() & {"action", "choices"}:
        more["action"] = "store_true"
    if default is not None:
        more["default"] = default
    if parse is not None:
        more["type"] = parse
    where.add_argument(*names, help=text, **more)


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add FILE..., inputs that are decompressed."""
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=FILE_HELP,
    )


def add_force(parser: argparse._ActionsContainer, also: str = "") -> None:
    """Add --force. also: what else it does, for the help."""
    add_option(
        parser,
        "--force",
        f"replace an existing output of any origin{also}; inputs are never replaced",
    )


def add_output(parser: argparse._ActionsContainer) -> None:
    """Add -o, which is standard output by default."""
    add_option(parser, "-o --output FILE", "default and - : standard output", default="-")


def add_chunk_size(parser: argparse._ActionsContainer, default: int = CHUNK_SIZE) -> None:
    """Add --chunk-size. default: in bytes."""
    add_option(
        parser,
        "--chunk-size SIZE",
        f"bytes to read at a time (default: {default >> 10}KiB)",
        parse_chunk_size,
        default,
    )


def add_no_unpack(parser: argparse._ActionsContainer) -> None:
    """Add --no-unpack."""
    add_option(
        parser,
        "--no-unpack",
        "do not decompress: take the bytes as they are",
        action="store_false",
        dest="unpack",
    )


def add_errors(parser: argparse._ActionsContainer, default: str = "strict") -> None:
    """Add --errors."""
    add_option(
        parser,
        "--errors",
        "for bytes that are not UTF-8: raise an error, replace them by U+FFFD, or keep them "
        f"(default: {default})",
        default=default,
        choices=("strict", "replace", "surrogateescape"),
    )
