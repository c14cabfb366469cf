"""`streamtok vocab`: looks up tokens of a vocabulary, and lists odd ones."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..answers.views.visible import visible, width
from ..jobs.argument_types import parse_natural
from . import encoding_options, options
from .messages import Misused, say, shown
from .options import add_option
from .paint import columns, write_lines

if TYPE_CHECKING:
    from ..answers.views.tokens import Token
    from ..answers.views.vocabulary_view import TokenPage
    from ..encoding import Encoding

_EXAMPLES = [
    "@ -e o200k_base --unreachable",
    "@ --search token",
    "@ --bytes 'e6 9d' --limit 5",
    "@ --id 1917",
    "@ --duplicates --json | head -1",
]
_HEAD = ["id", "rank", "size", "bytes", "text"]
_MOST_BYTES = 16  # bytes of a token to show in hexadecimal
_MOST_COLUMNS = 48  # columns of its text to show; --json cuts neither


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers, "vocab", run, "look up tokens, and list odd ones", _EXAMPLES
    )
    parser.set_defaults(failure_code=2)  # as in grep, where 1 means that nothing was found
    encoding_options.add_encoding(parser)
    kinds = parser.add_argument_group(
        "which tokens (one of these; exit code 0: found, 1: none, 2: an error)"
    )
    kind = kinds.add_mutually_exclusive_group(required=True)
    add_option(kind, "--search TEXT", "tokens that contain this text")
    add_option(kind, "--bytes HEX", "tokens that contain these bytes, such as 'e6 9d'")
    add_option(kind, "--id N", "all about one token, with its merges", parse_natural)
    for name, text in (
        ("unreachable", "tokens that do not re-encode to themselves"),
        ("half-characters", "tokens that are not UTF-8 by themselves"),
        ("longest", "tokens with the most bytes"),
        ("duplicates", "tokens that are duplicates except for case and surrounding spaces"),
    ):
        kind.add_argument(
            f"--{name}", dest="list", action="store_const", const=name.replace("-", "_"), help=text
        )
    output = parser.add_argument_group("what is shown")
    add_option(output, "--limit N", "how many, at most; 0: all (default: 50)", parse_natural, 50)
    add_option(output, "--json", "a line of JSON for each")


def run(args: argparse.Namespace) -> int:
    encoding = encoding_options.load_encoding(args.encoding)
    found = _find(args, encoding)
    if not found and args.list is None:
        name = shown(encoding.name)
        say(
            f"no token of {name} contains that"
            if args.id is None
            else f"{name} has no id {args.id}"
        )
        return 1
    kept = found[: args.limit or len(found)]
    if len(kept) < len(found):
        say(f"{len(kept)} of {len(found):,} are shown; --limit 0 shows all")
    if args.json:
        write_lines(json.dumps(one.as_json()) for one in kept)
    elif args.id is not None:
        write_lines(_page_lines(kept[0]))
    else:
        write_lines(_table(args.list, kept))
    return 0


def _find(args: argparse.Namespace, encoding: Encoding) -> Sequence[Any]:
    from ..answers.views import vocabulary_view

    if args.id is not None:
        try:
            return [vocabulary_view.token_page(encoding, args.id)]
        except (KeyError, OverflowError):
            return []
    if args.search is not None:
        if not args.search:
            raise Misused("--search needs a text")
        return vocabulary_view.find_text(encoding, args.search)
    if args.bytes is not None:
        try:
            data = vocabulary_view.parse_hex(args.bytes)
        except ValueError as error:
            raise Misused(f"--bytes: {error}") from None
        return vocabulary_view.find_bytes(encoding, data)
    make: Callable[[Encoding], Sequence[Any]] = getattr(vocabulary_view, args.list)
    return make(encoding)


def _table(kind: str | None, found: Sequence[Any]) -> list[str]:
    if kind == "duplicates":
        rows = [
            [visible(one.text), str(len(one.tokens)), " ".join(token.shown for token in one.tokens)]
            for one in found
        ]
        return columns([["text", "tokens", "which"], *rows], (False, True, False))
    if kind == "unreachable":
        head = [*_HEAD, "becomes", ""]
        rows = [
            [*_cells(one.token), ", ".join(map(str, one.ids)), "" if one.is_utf8 else "half"]
            for one in found
        ]
    else:
        head, rows = _HEAD, [_cells(token) for token in found]
    return columns([head, *rows], [True, True, True, *[False] * (len(head) - 3)])


def _page_lines(page: TokenPage) -> list[str]:
    token = page.token
    rank = "special" if token.is_special else "-" if token.rank is None else str(token.rank)
    lines = [
        f"text   {token.shown}",
        f"id     {token.id}",
        f"rank   {rank}",
        f"bytes  {token.bytes.hex(' ')}{'' if page.is_utf8 else '  (not UTF-8 by itself)'}",
    ]
    if page.merge_tree:
        lines.append("merges")
    depths = [0] * len(page.merge_tree)
    for at, node in enumerate(page.merge_tree):  # each node comes before its parts
        for part in node.parts or ():
            depths[part] = depths[at] + 1
        lines.append(f"  {'  ' * depths[at]}{node.shown}  rank {node.rank}")
    if page.neighbours:
        lines += ["neighbours", *(f"  {one.id:>7}  {one.shown}" for one in page.neighbours)]
    return lines


def _cells(token: Token) -> list[str]:
    rank = "-" if token.rank is None else str(token.rank)
    more = " ..." if len(token.bytes) > _MOST_BYTES else ""
    data = token.bytes[:_MOST_BYTES].hex(" ") + more
    text = token.shown
    if width(text) > _MOST_COLUMNS:
        while width(text) > _MOST_COLUMNS - 3:
            text = text[:-1]
        text += "..."
    return [str(token.id), rank, str(len(token.bytes)), data, text]
