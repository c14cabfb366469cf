"""`streamtok bench`: compares naive with incremental streaming on a user's file."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from ..jobs.argument_types import parse_chunk_sizes
from ..jobs.sources.blocks import check_file
from ..registry import list_encoding_names
from . import encoding_options, open_inputs, options
from .messages import Refused, input_name
from .options import add_option
from .progress import show_bar

_MAX_BYTES = 8 << 20  # bytes of the file to read; more would not improve the figures
_LITTLE = 1 << 18  # bytes; smaller files take too little time to measure
_COLUMNS = """
way         offline: all of the text at once; incremental: a stream encoder; naive: each chunk
            by itself
µs/chunk    median time for one chunk; MB/s: of text
tokens      the number of ids
wrong ids   ids that the whole text does not have at their offset
cut tokens  chunk ends that fall inside a token of the whole text
broken      chunks whose ids do not decode to their bytes: a character was cut
"""


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "bench",
        run,
        "compare naive with incremental streaming on your own file",
        ["@ book.txt", "@ -e o200k_base --chunk-sizes 256,4KiB book.txt"],
    )
    parser.description = f"{parser.description}\n\ncolumns:{textwrap.indent(_COLUMNS, '  ')}"
    parser.add_argument("file", metavar="FILE", help="- : standard input")
    encoding_options.add_encoding(parser)
    add_option(
        parser,
        "--chunk-sizes SIZE,...",
        "default: 256,4KiB,64KiB",
        parse_chunk_sizes,
        [256, 4096, 65536],
    )


def run(args: argparse.Namespace) -> int:
    from .measure import measure, table

    encoding = encoding_options.load_encoding(args.encoding)
    if args.encoding not in list_encoding_names():
        raise Refused(
            f"{args.encoding} is not the name of an encoding: streamtok list shows the names"
        )
    name = input_name(args.file)
    if args.file != "-":
        check_file(args.file)
        open_inputs.refuse_ids(args.file)
    with open(0 if args.file == "-" else args.file, "rb", closefd=args.file != "-") as file:
        data = file.read(_MAX_BYTES)
    if not data:
        raise Refused(f"{name} is empty: expected a text file")
    text = data.decode("utf-8", "replace").encode()
    note = "" if text == data else ", with U+FFFD for bytes that are not UTF-8"
    print(f"{name}: {len(data):,} bytes{note}, {args.encoding}")
    if len(data) < _LITTLE:
        print("too small for reliable figures: use a file of 1 MB or more")
    with show_bar(False, "measuring", None, "pass") as advance:
        rows = measure(text, encoding, args.chunk_sizes, progress=advance)
    print("", *table(rows), sep="\n", end=f"\n{_COLUMNS}")
    return 0
