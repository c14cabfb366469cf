"""`streamtok bench`: compares naive with incremental streaming on a file of the user."""

from __future__ import annotations

import argparse
from typing import Any

from ..jobs.argument_types import parse_chunk_sizes
from ..jobs.sources.blocks import check_file
from . import encoding_options, open_inputs, options
from .options import add_option


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "bench",
        run,
        "compare naive with incremental streaming on your own file",
        ["@ book.txt", "@ -e o200k_base --chunk-sizes 256,4KiB book.txt"],
    )
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
    return measure.main(args.file, args.encoding, args.chunk_sizes)
