"""`streamtok compare`: one text in two to four encodings, side by side."""

from __future__ import annotations

import argparse
import json
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from ..answers.views.visible import width
from ..jobs.argument_types import parse_natural
from . import encoding_options, one_text, options
from .messages import Misused, say, shown
from .options import add_option
from .paint import Paint, add_color, columns, padded, room, write_lines

if TYPE_CHECKING:
    from ..answers.views.comparison import Comparison, Segment
    from ..answers.views.tokens import PlacedToken, TextTokens

_EXAMPLES = [
    "@ notes.txt -e cl100k_base -e o200k_base",
    "@ notes.txt -e gpt2 -e tokenizer.json --json | jq .differing",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "compare",
        run,
        "compare the tokens of a text in several encodings",
        _EXAMPLES,
    )
    one_text.add_file(parser)
    add_option(
        parser,
        "-e --encoding NAME",
        "an encoding, as for the other commands; two to four times "
        "(default: cl100k_base and o200k_base)",
        action="append",
    )
    group = parser.add_argument_group("what is shown")
    add_option(
        group, "--limit N", "places that differ, at most; 0: all (default: 20)", parse_natural, 20
    )
    add_option(group, "--json", "one object with all tokens")
    add_color(group)
    text = parser.add_argument_group("text")
    options.add_errors(text)
    parser.set_defaults(chunk_size=options.CHUNK_SIZE)


def run(args: argparse.Namespace) -> int:
    from ..answers.views.comparison import MOST_ENCODINGS, compare_encodings

    names = args.encoding or ["cl100k_base", "o200k_base"]
    if not 2 <= len(names) <= MOST_ENCODINGS:
        raise Misused(f"-e must be given two to {MOST_ENCODINGS} times, not {len(names)}")
    encodings = [encoding_options.load_named(name) for name in names]
    with one_text.errors_of(args.file):
        data = one_text.read_whole(args, args.file, "compare takes")
        found = compare_encodings(encodings, data, errors=args.errors)
    if args.json:
        write_lines([json.dumps(found.as_json())])
        return 0
    write_lines(_totals(found))
    differing = [one for one in found.segments if not one.is_same]
    listed = differing[: args.limit] if args.limit else differing
    if listed:
        write_lines(["", *_side_by_side(found, listed, Paint(args.color))])
    if len(differing) > len(listed):
        say(f"{len(differing) - len(listed):,} more places differ; --limit 0 shows them")
    return 0


def _totals(found: Comparison) -> list[str]:
    rows = [["encoding", "tokens", "characters/token", "tokens/character"]]
    for column in found.columns:
        each, rate = column.characters_per_token, column.tokens_per_character
        rows.append(
            [
                shown(column.encoding),
                f"{column.n_tokens:,}",
                "-" if each is None else f"{each:.3f}",
                "-" if rate is None else f"{rate:.4f}",
            ]
        )
    agree = f"boundaries: {found.agreeing:,} shared, {found.differing:,} differing"
    return [*columns(rows, (False, True, True, True)), agree]


def _side_by_side(found: Comparison, segments: list[Segment], paint: Paint) -> list[str]:
    """A line for each segment: where it is, and the tokens of each encoding.

    Where the terminal is too narrow, each encoding has a line of its own.
    """
    rows = [["byte", *(shown(column.encoding) for column in found.columns)]]
    drawn = [rows[0]]
    for segment in segments:
        tokens = [[one.token for one in _tokens_in(column, segment)] for column in found.columns]
        between = "" if paint.is_on else "|"
        rows.append([str(segment.start), *(between.join(t.shown for t in some) for some in tokens)])
        drawn.append([str(segment.start), *map(paint.tokens, tokens)])
    widths = [max(map(width, cells)) for cells in zip(*rows, strict=True)]
    most = room()
    if most is None or sum(widths) + 2 * len(found.columns) <= most:
        return columns(rows, [True, *[False] * len(found.columns)], drawn)
    size = max(map(width, rows[0][1:]))
    return [
        f"{line[0] if i == 0 else '':>{widths[0]}}  {padded(name, name, size)}  {line[i + 1]}"
        for line in drawn[1:]
        for i, name in enumerate(rows[0][1:])
    ]


def _tokens_in(column: TextTokens, segment: Segment) -> list[PlacedToken]:
    first = bisect_left(column.tokens, segment.start, key=lambda one: one.start)
    last = bisect_right(column.tokens, segment.stop, key=lambda one: one.stop)
    return column.tokens[first:last]
