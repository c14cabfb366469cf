"""`streamtok decode`: ids back to bytes."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import sinks
from ..sources.blocks import STDIN, check_file, read_descriptor
from . import options
from .report import Refused, input_name


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "decode",
        run,
        "turn ids back into the bytes they stand for",
        ["@ book.npy > book.txt", "@ -e gpt2 --format u16 < ids", "echo 15339 1917 | @"],
    )
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="- : standard input")
    options.add_encoding(parser)
    options.add_output(parser)
    parser.add_argument(
        "--format",
        choices=sinks.READ_FORMATS,
        help="default: what the suffix of the input says, as for encode",
    )


def run(args: argparse.Namespace) -> int:
    encoding = options.load_encoding(args)
    if args.file != "-":
        check_file(args.file)
    try:
        chosen = sinks.choose_format(args.format, args.file, encoding.max_token_value)
    except ValueError as error:
        raise Refused(str(error)) from None
    decoder = encoding.stream_decoder()
    with sinks.open_output(args.output) as output:
        rows = sinks.read_ids(_blocks(args), chosen)
        while True:
            try:
                ids = next(rows, None)
            except ValueError as error:
                raise Refused(f"{input_name(args.file)}: {error}") from None
            if ids is None:
                return 0
            try:
                data = decoder.decode_bytes(ids)
            except (KeyError, OverflowError) as error:
                at = getattr(error, "position", None)
                if at is None:  # no uint32
                    at = int(np.flatnonzero((ids < 0) | (ids > 0xFFFFFFFF))[0])
                raise Refused(
                    f"{input_name(args.file)}: id {ids[at]} is not in {encoding.name} "
                    f"(after {decoder.tokens_in + at} others)"
                ) from None
            output.write(data)


def _blocks(args: argparse.Namespace) -> Iterator[bytes]:
    name, heard = input_name(args.file), args.signals.heard
    if args.file == "-":
        yield from read_descriptor(STDIN, name, options.CHUNK_SIZE, heard)
        return
    with contextlib.ExitStack() as stack:
        with heard():  # a FIFO opens when its writer comes
            file = stack.enter_context(open(args.file, "rb", buffering=0))
        yield from read_descriptor(file.fileno(), name, options.CHUNK_SIZE, heard)
