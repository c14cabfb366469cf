"""`streamtok show`: the tokens of a text in colours, as it arrives.

No text reaches the terminal unchanged: spaces, line ends and control characters are
shown as signs (`answers/views/visible.py`). The tokens shown are final: no later text changes it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..encoding import Encoding
from ..jobs.argument_types import parse_chunk_size
from . import encoding_options, one_text, options
from .messages import Misused, say, shown, write_bytes
from .options import add_option
from .paint import Paint, add_color, write_lines
from .stop_signals import Signals

if TYPE_CHECKING:  # what a command needs is imported when it runs
    from ..answers.views.lanes import LaneChunk
    from ..answers.views.merges import MergeTrace
    from ..answers.views.tokens import PlacedToken, Token

_EXAMPLES = [
    "@ notes.txt",
    "tail -f app.log | @ -e o200k_base",
    "@ --table --special allow prompt.txt",
    "@ --json notes.txt | jq -r .id",
    "@ --lanes 16 notes.txt",
    "echo ' tokenization' | @ --merges",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers, "show", run, "show the tokens of a text, as it arrives", _EXAMPLES
    )
    one_text.add_file(parser)
    group = parser.add_argument_group("what is shown (default: the text, token by token)")
    kind = group.add_mutually_exclusive_group()
    add_option(kind, "--table", "a line for each token: offset, id, rank, bytes, text")
    add_option(
        kind,
        "--lanes SIZE",
        "the text in chunks of SIZE bytes: naive ids beside those of the stream; wrong ones "
        "are red",
        parse_chunk_size,
    )
    add_option(kind, "--merges", "how each different pre-token is merged")
    add_option(group, "--json", "JSON: a line for each token, chunk or pre-token")
    add_color(group)
    add_option(group, "-q --quiet", "do not print the totals on standard error")
    encoding_options.add_text_options(parser)
    reading = parser.add_argument_group("reading")
    options.add_chunk_size(reading)


def run(args: argparse.Namespace) -> int:
    encoding = encoding_options.load_encoding(args)
    paint = Paint(args.color)
    with one_text.errors_of(args.file):
        if args.lanes is not None:
            _show_lanes(args, encoding, paint)
        elif args.merges:
            _show_merges(args, encoding, paint)
        else:
            _Feed(args, encoding, paint).run()
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

    def run(self) -> None:
        """Show all of the input. A signal ends it: what is pending is shown first."""
        stopped: Signals.Paused | None = None
        try:
            for block in one_text.blocks_of(self._args, self._args.file):
                self._feed(block, False)
        except Signals.Paused as stop:
            stopped = stop
        try:
            self._feed(b"", True)
        except UnicodeDecodeError:
            if stopped is None:  # or else it stopped inside of a character
                raise
        finally:
            self._end_line()
        if not (self._args.quiet or self._args.json):
            say(f"{self._tokens:,} tokens of {shown(self._encoding.name)}")
        if stopped is not None:
            raise stopped

    def _feed(self, block: bytes, final: bool) -> None:
        from ..answers.views.tokens import describe_ids

        lines: Iterable[str]
        if self._has_places:
            placed = list(self._placed(block, final))
            lines = map(_json_line if self._args.json else _table_line, placed)
            if placed:
                write_lines(lines)
            self._tokens += len(placed)
            return
        stream = self._streams[0]
        ids = stream.encode(block, final)
        if ids:
            self._write(list(describe_ids(self._encoding, ids)))

    def _placed(self, block: bytes, final: bool) -> Iterator[PlacedToken]:
        from ..answers.views.tokens import PlacedToken, describe_ids

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

    def _end_line(self) -> None:
        if self._is_inside_line:
            self._is_inside_line = False
            write_lines([""])


def _json_line(one: PlacedToken) -> str:
    return json.dumps(one.as_json())


def _table_line(one: PlacedToken) -> str:
    token = one.token
    rank = "-" if token.rank is None else str(token.rank)
    return _line(str(one.start), str(token.id), rank, token.bytes.hex(" "), token.shown)


def _line(start: str, id: str, rank: str, data: str, text: str) -> str:
    return f"{start:>9}  {id:>7}  {rank:>7}  {data:<24}  {text}"


def _refuse_specials(args: argparse.Namespace, option: str) -> None:
    if args.special != "plain":
        raise Misused(f"{option} takes special tokens for plain text: leave out --special")


def _show_lanes(args: argparse.Namespace, encoding: Encoding, paint: Paint) -> None:
    from ..answers.views.lanes import make_lanes

    _refuse_specials(args, "--lanes")
    if args.errors != "strict":
        raise Misused("--lanes cannot be combined with --errors: its text must be UTF-8")
    lanes = make_lanes(encoding, one_text.read_whole(args, args.file, "--lanes takes"), args.lanes)
    if args.json:
        write_lines(json.dumps(chunk.as_json()) for chunk in lanes.chunks)
        return
    for chunk in lanes.chunks:
        write_lines(_lane_lines(chunk, paint))
    if not args.quiet:
        say(
            f"naive: {lanes.naive_tokens:,} tokens, {lanes.wrong_tokens:,} of them wrong; "
            f"exact: {lanes.tokens:,}; {lanes.cuts_inside_tokens:,} of {lanes.cuts:,} cuts are in "
            "a token"
        )


def _lane_lines(chunk: LaneChunk, paint: Paint) -> list[str]:
    if chunk.start == chunk.stop:
        naive = "(end)"
    else:
        parts = [
            paint.wrong(one.token.shown) if one.is_wrong else paint.token(one.token, number)
            for number, one in enumerate(chunk.naive)
        ]
        naive = ("" if paint.is_on else "|").join(parts)
    exact = paint.tokens(one.token for one in chunk.exact)
    pending = f"  pending: {paint.dim(chunk.pending_shown)}" if chunk.pending else ""
    return [f"{chunk.start:>9}  naive  {naive}", f"{'':>9}  exact  {exact}{pending}"]


def _show_merges(args: argparse.Namespace, encoding: Encoding, paint: Paint) -> None:
    from ..answers.views.merges import pretokens, trace_merges

    _refuse_specials(args, "--merges")
    text = one_text.read_whole(args, args.file, "--merges takes").decode("utf-8", args.errors)
    for pretoken in dict.fromkeys(pretokens(encoding, text)):
        data = pretoken.encode("utf-8", "surrogateescape")
        trace = trace_merges(encoding, data)
        if args.json:
            write_lines([json.dumps(trace.as_json())])
        else:
            write_lines(_merge_lines(trace, paint))


def _merge_lines(trace: MergeTrace, paint: Paint) -> Iterator[str]:
    start = "|".join(part.shown for part in trace.start)
    yield f"{start}  {len(trace.start)} bytes"
    for step in trace.steps:
        one = step.candidate
        pair = f"{one.left}v{one.left_version} + {one.right}v{one.right_version}"
        line = f"  {step.kind:<6}  rank {one.rank:<7}  {pair:<15}  heap {len(step.heap):<3}"
        if step.kind == "merged":
            line += "  " + "|".join(part.shown for part in step.parts)
        line = line.rstrip()
        yield paint.dim(line) if step.kind == "stale" else line
    ids = ", ".join(map(str, trace.ids))
    known = "; a token as a whole" if trace.is_whole_token else ""
    yield f"  ids {ids}: {trace.merges} merges, {trace.stale} stale{known}"
