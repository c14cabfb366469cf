"""`streamtok encode`: text to ids."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from .. import sinks
from . import options
from .inputs import ids_of, input_size
from .report import Refused, is_terminal, progress, report


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers, "encode", run, "turn text into ids; each file is a text of its own"
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="- or none: standard input")
    options.add_text_options(parser)
    options.add_output(parser)
    parser.add_argument(
        "--format",
        choices=sinks.FORMATS,
        help="default: what the suffix of the output says (.npy .txt .u16 .u32), text for standard "
        "output, else u16 if the vocabulary fits, else u32; text is one id a line",
    )
    options.add_chunk_size(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    parser.add_argument("--json", action="store_true", help="the summary as one line of JSON")


def run(args: argparse.Namespace) -> int:
    encoding = options.load_encoding(args)
    stream = options.open_stream(args, encoding)
    names = args.files or ["-"]
    sizes = [input_size(name) for name in names]
    max_id = encoding.max_token_value
    try:
        chosen = sinks.choose_format(args.format, args.output, max_id)
    except ValueError as error:
        raise Refused(str(error)) from None
    if args.output == "-" and chosen in ("u16", "u32") and is_terminal(sys.stdout):
        raise Refused(f"{chosen} is not for a terminal: use -o FILE, a pipe or --format text")
    start = time.perf_counter()
    bytes_in = tokens = 0
    with sinks.open_output(args.output) as output, progress(args, sizes) as advance:
        try:
            sink = sinks.make_sink(output, chosen, max_id)
        except ValueError as error:
            raise Refused(str(error)) from None
        for name in names:
            for size, ids in ids_of(name, stream, args):
                sink.write(ids)
                bytes_in += size
                tokens += len(ids)
                advance(size, tokens)
        sink.finish()
    if not args.quiet:
        report(args, len(names), bytes_in, tokens, time.perf_counter() - start)
    return 0
