"""`streamtok bench`: naive against incremental streaming, on a file of the user."""

from __future__ import annotations

import argparse
from typing import Any

from ..pipeline.sources import check_file
from . import input_options as inputs
from . import options


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "bench",
        run,
        "compare naive with incremental streaming on your own file",
        ["@ book.txt", "@ -e o200k_base --chunk-sizes 256,4KiB --markdown book.txt"],
    )
    parser.add_argument("file", metavar="FILE", help="- : standard input")
    options.add_encoding(parser)
    parser.add_argument(
        "--chunk-sizes", type=options.chunk_sizes_of, default=[256, 4096, 65536], metavar="SIZE,..."
    )
    parser.add_argument("--markdown", action="store_true", help="a table for a README")


def run(args: argparse.Namespace) -> int:
    from . import measure as bench

    options.load_encoding(args)
    if args.file != "-":
        check_file(args.file)
        inputs.refuse_ids(args.file)
    return bench.main(args.file, args.encoding, args.chunk_sizes, args.markdown)
