"""`streamtok bench`: compares naive with incremental streaming on a file of the user."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from ..jobs.argument_types import parse_chunk_sizes
from ..jobs.sources.blocks import check_file
from . import encoding_options, open_inputs, options
from .options import add_option

_COLUMNS = """
way         offline: all of the text at once; incremental: a stream encoder; naive: each chunk
            by itself
µs/chunk    median time for one chunk; MB/s: of text
tokens      the number of ids
wrong ids   ids that the whole text does not have at their offset
cut tokens  ends of chunks that are inside a token of the whole text
broken      chunks whose ids are not those of their bytes: a character was cut
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
    from . import measure

    encoding_options.load_encoding(args)
    if args.file != "-":
        check_file(args.file)
        open_inputs.refuse_ids(args.file)
    code = measure.main(args.file, args.encoding, args.chunk_sizes)
    print(_COLUMNS, end="")
    return code
