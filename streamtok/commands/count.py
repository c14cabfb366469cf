"""`streamtok count`: tokens of each file."""

from __future__ import annotations

import argparse
import json
from typing import Any

from . import options
from .inputs import ids_of, input_size
from .report import Refused, complain, describe, shown


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(subparsers, "count", run, "count the tokens of each file")
    parser.add_argument("files", nargs="*", metavar="FILE", help="- or none: standard input")
    options.add_text_options(parser)
    options.add_chunk_size(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON for each file")


def run(args: argparse.Namespace) -> int:
    stream = options.open_stream(args, options.load_encoding(args))
    names = args.files or ["-"]
    rows: list[tuple[str, int, int]] = []
    for name in names:
        stream.reset()
        bytes_in = tokens = 0
        try:
            input_size(name)
            for size, ids in ids_of(name, stream, args):
                bytes_in += size
                tokens += len(ids)
        except (Refused, OSError) as error:  # the other files still count, as in wc
            complain(describe(error) if isinstance(error, OSError) else str(error))
            continue
        rows.append((name, tokens, bytes_in))
        _print_count(args, *rows[-1], is_named=bool(args.files))
    if len(names) > 1:
        total = "total", sum(row[1] for row in rows), sum(row[2] for row in rows)
        _print_count(args, *total, is_named=True)
    return 0 if len(rows) == len(names) else 1


def _print_count(
    args: argparse.Namespace, name: str, tokens: int, bytes_in: int, is_named: bool
) -> None:
    if args.json:
        print(json.dumps({"name": name, "tokens": tokens, "bytes": bytes_in}), flush=True)
    else:
        print(f"{tokens:>8} {shown(name)}" if is_named else tokens, flush=True)
