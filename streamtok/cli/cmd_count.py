"""`streamtok count`: counts the tokens of each file.

A signal ends the count. The text read until then is counted, and the exit code tells that the count
is incomplete.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from typing import Any, NamedTuple

from ..errors import StreamtokError
from ..pipeline.documents import DocumentEncoder
from . import encoding_options, input_options, open_inputs, options
from .messages import Misused, Refused, complain, describe, input_name, shown
from .stop_signals import Signals

_EXAMPLES = [
    "@ *.txt",
    "git ls-files | xargs @ -e o200k_base --errors replace",
    "@ --jsonl text --json docs.jsonl.zst",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers, "count", run, "count the tokens of each file", _EXAMPLES
    )
    input_options.add_source_options(parser)
    encoding_options.add_text_options(parser)
    options.add_chunk_size(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON for each file")


def run(args: argparse.Namespace) -> int:
    encoding = encoding_options.load_encoding(args)
    stream = encoding_options.open_stream(args, encoding)
    names = open_inputs.input_paths(args)
    rows: list[_Row] = []
    stopped: Signals.Paused | None = None
    for name in names:
        stream.reset()
        encoder = open_inputs.open_encoder(args, encoding, stream)
        try:
            tokens, stopped = _count(args, name, encoder)
        except Misused:
            raise
        except (Refused, StreamtokError, OSError) as error:  # count the other files, as wc does
            complain(describe(error) if isinstance(error, OSError) else str(error))
            continue
        rows.append(_Row(name, tokens, encoder.bytes, stopped is not None))
        _print_count(args, rows[-1], is_named=names != ["-"])
        if stopped is not None:
            args.when_stopped = f"interrupted: {input_name(name)} was counted only in part"
            break
    if len(names) > 1:
        total = _Row(
            "total",
            sum(row.tokens for row in rows),
            sum(row.bytes for row in rows),
            stopped is not None,
        )
        _print_count(args, total, is_named=True)
    if stopped is not None:
        raise stopped
    return 0 if len(rows) == len(names) else 1


class _Row(NamedTuple):
    name: str
    tokens: int
    bytes: int
    is_partial: bool


def _count(
    args: argparse.Namespace, name: str, encoder: DocumentEncoder
) -> tuple[int, Signals.Paused | None]:
    """The tokens of one input, and the signal that stopped it, or None."""
    tokens = 0
    opened = open_inputs.open_input(args, name)
    try:
        try:
            for parts in opened.groups(None, False):
                tokens += len(encoder.encode(parts)[0])
        except Signals.Paused as stop:
            with contextlib.suppress(UnicodeDecodeError):  # it stopped inside a character
                tokens += len(encoder.encode(opened.stop())[0])
            return tokens, stop
    except (UnicodeDecodeError, RuntimeError, ValueError) as error:
        is_split = open_inputs.is_split(args)
        raise open_inputs.explain(error, opened.name, encoder, is_split) from None
    return tokens, None


def _print_count(args: argparse.Namespace, row: _Row, is_named: bool) -> None:
    if args.json:
        about = {"name": row.name, "tokens": row.tokens, "bytes": row.bytes}
        print(json.dumps(about | ({"interrupted": True} if row.is_partial else {})), flush=True)
    else:
        print(f"{row.tokens:>8} {shown(row.name)}" if is_named else row.tokens, flush=True)
