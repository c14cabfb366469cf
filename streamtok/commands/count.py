"""`streamtok count`: tokens of each file."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..documents import DocumentEncoder
from ..errors import StreamtokError
from . import inputs, options
from .report import Refused, complain, describe, shown


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(subparsers, "count", run, "count the tokens of each file")
    inputs.add_source_options(parser)
    options.add_text_options(parser)
    options.add_chunk_size(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON for each file")


def run(args: argparse.Namespace) -> int:
    encoding = options.load_encoding(args)
    stream = options.open_stream(args, encoding)
    names = inputs.input_paths(args)
    rows: list[tuple[str, int, int]] = []
    for name in names:
        stream.reset()
        encoder = inputs.open_encoder(args, encoding, stream)
        try:
            tokens = _tokens(args, name, encoder)
        except (Refused, StreamtokError, OSError) as error:  # the others still count, as in wc
            complain(describe(error) if isinstance(error, OSError) else str(error))
            continue
        rows.append((name, tokens, encoder.bytes))
        _print_count(args, *rows[-1], is_named=names != ["-"])
    if len(names) > 1:
        total = "total", sum(row[1] for row in rows), sum(row[2] for row in rows)
        _print_count(args, *total, is_named=True)
    return 0 if len(rows) == len(names) else 1


def _tokens(args: argparse.Namespace, name: str, encoder: DocumentEncoder) -> int:
    tokens = 0
    opened = inputs.open_input(args, name)
    try:
        for parts in opened.groups(None, False):
            ids, _ = encoder.encode(parts)
            tokens += len(ids)
    except (UnicodeDecodeError, RuntimeError, ValueError) as error:
        raise inputs.refusal(error, opened.name, encoder, inputs.is_split(args)) from None
    return tokens


def _print_count(
    args: argparse.Namespace, name: str, tokens: int, bytes_in: int, is_named: bool
) -> None:
    if args.json:
        print(json.dumps({"name": name, "tokens": tokens, "bytes": bytes_in}), flush=True)
    else:
        print(f"{tokens:>8} {shown(name)}" if is_named else tokens, flush=True)
