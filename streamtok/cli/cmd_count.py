"""`streamtok count`: counts the tokens of each file, or of each document.

On a terminal, a bar shows the running count. A signal ends the count: the text read so far is
counted, and the exit code says that the count is incomplete. With `--follow`, which only a signal
can end, the exit code is 0.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import Any, NamedTuple

from ..engines.template import NO_TEMPLATE
from ..errors import StreamtokError
from ..jobs.documents import DocumentEncoder
from ..jobs.rows import Totals
from ..jobs.sources.inputs import Input
from ..jobs.sources.reading import LiveReading
from ..jobs.sources.records import Positions
from ..jobs.sources.splitters import Part
from . import encoding_options, open_inputs, options
from .messages import (
    Misused,
    Refused,
    complain,
    describe,
    flush_stdout,
    input_name,
    is_terminal,
    print_now,
    say,
    shown,
)
from .options import add_option
from .progress import show_bar
from .stop_signals import Signals

_EXAMPLES = [
    "@ *.txt",
    "git ls-files | xargs @ -e o200k_base",
    "@ --jsonl text --json docs.jsonl.zst",
    "@ --follow app.log",
    "@ --lines --each prompts.txt | sort -n | tail -1",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers, "count", run, "count the tokens of each file", _EXAMPLES
    )
    options.add_files(parser)
    groups = options.add_options(parser, LiveReading)
    options.add_glob(next(iter(groups.values())))
    encoding_options.add_text_options(parser, errors="replace")
    encoding_options.add_template(parser)
    options.add_chunk_size(parser)
    group = parser.add_argument_group("what is printed (default: a line for each file)")
    add_option(group, "--json", "JSON, one object a line")
    add_option(group, "--each", "a line for each document, instead of for each file")


def run(args: argparse.Namespace) -> int:
    encoding = encoding_options.load_encoding(args.encoding)
    stream = encoding_options.open_stream(args, encoding)
    reading = options.read_options(args, LiveReading)
    notes = open_inputs.Notes()
    names = open_inputs.input_paths(args.files, args.glob, reading, notes)
    how = reading, args.signals.heard, args.chunk_size
    rows: list[_Row] = []
    stopped: Signals.Paused | None = None
    for name in names:
        stream.reset()
        template = encoding.definition.template if args.add_special_tokens else NO_TEMPLATE
        encoder = DocumentEncoder(
            stream, prepend=template.before, append=template.after, skip_empty=args.skip_empty
        )
        live = _Live(args, name)
        totals = Totals()
        try:
            opened = open_inputs.open_input(name, *how, totals.skip)
            stopped = _count(args, opened, encoder, live, totals)
        except (Misused, BrokenPipeError):
            raise
        except (Refused, StreamtokError, OSError) as error:  # count the other files, as wc does
            complain(describe(error) if isinstance(error, OSError) else str(error))
            continue
        is_partial = stopped is not None and not args.follow
        rows.append(_Row(name, live.tokens, encoder.bytes, is_partial))
        if not args.each:
            _print_count(args, rows[-1], is_named=names != ["-"])
        if is_partial:
            args.when_stopped = f"interrupted: {input_name(name)} was counted only in part"
            break
    if len(names) > 1 and not args.each:
        total = _Row(
            "total",
            sum(row.tokens for row in rows),
            sum(row.bytes for row in rows),
            any(row.is_partial for row in rows),
        )
        _print_count(args, total, is_named=True)
    if stopped is not None and not args.follow:
        raise stopped
    return 0 if len(rows) == len(names) else 1


class _Row(NamedTuple):
    name: str
    tokens: int
    bytes: int
    is_partial: bool


class _Live:
    """The running count of one input. With --each, prints the count of each document as it ends."""

    def __init__(self, args: argparse.Namespace, name: str) -> None:
        self.tokens = 0
        self._args = args
        self._name = name
        self._documents = 0
        self._before = 0  # tokens of the finished documents

    def add(self, encoder: DocumentEncoder, parts: list[Part], positions: Positions) -> None:
        """Encode the parts and count their tokens. Raises the encoder's errors."""
        ids, ends = encoder.encode(parts, positions)
        if self._args.each:
            for end in ends.tolist():
                self._documents += 1
                tokens = self.tokens + end - self._before
                self._before = self.tokens + end
                row = {"name": self._name, "document": self._documents, "tokens": tokens}
                print(json.dumps(row) if self._args.json else tokens)
            if len(ends):
                flush_stdout()
        self.tokens += len(ids)


def _count(
    args: argparse.Namespace,
    opened: Input,
    encoder: DocumentEncoder,
    live: _Live,
    totals: Totals,
) -> Signals.Paused | None:
    """Count one input; return the signal that stopped it, or None."""
    has_lines = args.each and is_terminal(sys.stdout)  # they would mix with a bar
    try:
        try:
            with show_bar(False, "counting", opened.size, "B") as advance:
                for parts in opened.groups(None, False):
                    live.add(encoder, parts, opened.positions)
                    if not has_lines:
                        advance(opened.read, opened.size or 0, f"{live.tokens:,} tokens")
        except Signals.Paused as stop:
            with contextlib.suppress(UnicodeDecodeError):  # stopped inside a character
                live.add(encoder, opened.stop(), opened.positions)
            return stop
        totals.documents = encoder.documents
        totals.check_skipped()
    except (UnicodeDecodeError, RuntimeError, ValueError) as error:
        raise open_inputs.explain(error, encoder.failed_position or opened.name) from None
    if totals.skipped:
        say(f"{opened.name}: {totals.skipped:,} skipped ({totals.reasons})")
    return None


def _print_count(args: argparse.Namespace, row: _Row, is_named: bool) -> None:
    if args.json:
        about = {"name": row.name, "tokens": row.tokens, "bytes": row.bytes}
        print_now(json.dumps(about | ({"interrupted": True} if row.is_partial else {})))
    else:
        print_now(f"{row.tokens:>8} {shown(row.name)}" if is_named else row.tokens)
