"""`streamtok show`: shows the tokens of a text in colours, as the text arrives.

No raw text reaches the terminal: spaces, line ends and control characters are shown as printable
signs (`answers/views/visible.py`). Tokens are shown only when no later text can change them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from ..answers.views.tokens import PlacedToken, Token, describe_ids
from ..encoding import Encoding
from . import encoding_options, one_text, options
from .messages import say, shown, write_bytes
from .options import add_option
from .paint import Paint, write_lines
from .stop_signals import Signals

_EXAMPLES = [
    "@ notes.txt",
    "tail -f app.log | @ -e o200k_base",
    "@ --table --special allow prompt.txt",
    "@ --json notes.txt | jq -r .id",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers, "show", run, "show the tokens of a text, as it arrives", _EXAMPLES
    )
    one_text.add_file(parser)
    group = parser.add_argument_group("what is shown (default: the text, token by token)")
    kind = group.add_mutually_exclusive_group()
    add_option(kind, "--table", "a line for each token: offset, id, rank, bytes, text")
    add_option(kind, "--json", "a line of JSON for each token")
    add_option(
        group,
        "--color",
        "auto: on a terminal, unless NO_COLOR is set (default: auto)",
        default="auto",
        choices=("auto", "always", "never"),
    )
    add_option(group, "-q --quiet", "do not print the totals on standard error")
    encoding_options.add_text_options(parser)
    reading = parser.add_argument_group("reading")
    options.add_chunk_size(reading)


def run(args: argparse.Namespace) -> int:
    encoding = encoding_options.load_encoding(args.encoding)
    with one_text.open_text(args, args.file) as blocks:
        _Feed(args, encoding, Paint(args.color)).run(blocks)
    return 0


class _Feed:
    """Shows tokens as they become final."""

    def __init__(self, args: argparse.Namespace, encoding: Encoding, paint: Paint) -> None:
        self._args, self._encoding, self._paint = args, encoding, paint
        self._has_places = args.table or args.json
        self._streams = [
            encoding_options.open_stream(args, encoding)
            for _ in (("byte", "character") if args.json else ("byte",))
        ]
        self._tokens = 0
        self._is_inside_line = False
        if args.table:
            write_lines([_line("byte", "id", "rank", "bytes", "text")])

    def run(self, blocks: Iterator[bytes]) -> None:
        """Show the blocks of a text. At a signal, show the pending tokens, then raise `Paused`."""
        stopped: Signals.Paused | None = None
        try:
            for block in blocks:
                self._feed(block, False)
        except Signals.Paused as stop:
            stopped = stop
        try:
            self._feed(b"", True)
        except UnicodeDecodeError:
            if stopped is None:  # otherwise the signal came in the middle of a character
                raise
        finally:
            if self._is_inside_line:
                write_lines([""])
        if not (self._args.quiet or self._args.json):
            say(f"{self._tokens:,} tokens of {shown(self._encoding.name)}")
        if stopped is not None:
            raise stopped

    def _feed(self, block: bytes, final: bool) -> None:
        if self._has_places:
            line = _json_line if self._args.json else _table_line
            if lines := list(map(line, self._placed(block, final))):
                write_lines(lines)
            self._tokens += len(lines)
        elif ids := self._streams[0].encode(block, final):
            self._write(list(describe_ids(self._encoding, ids)))

    def _placed(self, block: bytes, final: bool) -> Iterator[PlacedToken]:
        ids, spans = self._streams[0].encode_with_offsets(block, final, unit="byte")
        both = [spans]
        for stream in self._streams[1:]:
            both.append(stream.encode_with_offsets(block, final, unit="character")[1])
        tokens = describe_ids(self._encoding, ids)
        for token, *places in zip(tokens, *(rows.tolist() for rows in both), strict=True):
            yield PlacedToken(token, *places[0], *places[-1])

    def _write(self, tokens: list[Token]) -> None:
        parts = []
        for token in tokens:
            if self._is_inside_line and not self._paint.is_on:
                parts.append("|")
            parts.append(self._paint.token(token, self._tokens))
            self._tokens += 1
            self._is_inside_line = not token.bytes.endswith(b"\n")
            if not self._is_inside_line:
                parts.append("\n")
        write_bytes("".join(parts).encode(), at_once=True)


def _json_line(one: PlacedToken) -> str:
    return json.dumps(one.as_json())


def _table_line(one: PlacedToken) -> str:
    token = one.token
    rank = "-" if token.rank is None else str(token.rank)
    return _line(str(one.start), str(token.id), rank, token.bytes.hex(" "), token.shown)


def _line(start: str, id: str, rank: str, data: str, text: str) -> str:
    return f"{start:>9}  {id:>7}  {rank:>7}  {data:<24}  {text}"
