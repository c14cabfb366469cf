"""`streamtok vocab`: looks up tokens of a vocabulary, and lists those that are odd in some way."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..encoding import Encoding
from ..views.visible import visible, width
from . import encoding_options, options
from .argument_types import parse_natural
from .messages import Misused, Refused, say, shown
from .paint import columns, write_lines

if TYPE_CHECKING:
    from ..views.tokens import Token
    from ..views.vocabulary_search import TokenPage

_EXAMPLES = [
    "@ -e o200k_base --unreachable",
    "@ --search token",
    "@ --bytes 'e6 9d' --limit 5",
    "@ --id 1917",
    "@ --duplicates --json | head -1",
]
_HEAD = ["id", "rank", "size", "bytes", "text"]
_MOST_BYTES = 16  # of a token that are shown in hexadecimal
_MOST_COLUMNS = 48  # of its text; JSON has all of both


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers, "vocab", run, "look up tokens, and list odd ones", _EXAMPLES
    )
    encoding_options.add_encoding(parser)
    kind = parser.add_argument_group("which tokens (one of these)")
    kind.add_argument("--search", metavar="TEXT", help="tokens that contain this text")
    kind.add_argument(
        "--bytes", metavar="HEX", help="tokens that contain these bytes, such as 'e6 9d'"
    )
    kind.add_argument(
        "--id", type=parse_natural, metavar="N", help="all about one token, with its merges"
    )
    kind.add_argument(
        "--unreachable",
        action="store_true",
        help="tokens that their own text is not encoded to",
    )
    kind.add_argument(
        "--half-characters", action="store_true", help="tokens that are not UTF-8 by themselves"
    )
    kind.add_argument("--longest", action="store_true", help="tokens with the most bytes")
    kind.add_argument(
        "--duplicates",
        action="store_true",
        help="tokens that are duplicates except for case and surrounding spaces",
    )
    output = parser.add_argument_group("what is shown")
    output.add_argument(
        "--limit",
        type=parse_natural,
        default=50,
        metavar="N",
        help="how many, at most; 0: all (default: 50)",
    )
    output.add_argument("--json", action="store_true", help="a line of JSON for each")


def run(args: argparse.Namespace) -> int:
    kinds = [args.search, args.bytes, args.id]
    given = sum(kind is not None for kind in kinds)
    given += args.unreachable + args.half_characters + args.longest + args.duplicates
    if given != 1:
        raise Misused(
            "expected one of --search, --bytes, --id, --unreachable, --half-characters, --longest "
            "and --duplicates"
        )
    encoding = encoding_options.load_encoding(args)
    if args.id is not None:
        return _show_page(args, encoding)
    if args.duplicates:
        return _show_duplicates(args, encoding)
    if args.unreachable:
        from ..views import vocabulary_lists

        odd = vocabulary_lists.unreachable(encoding)
        kept = _limited(args, odd)
        if args.json:
            write_lines(json.dumps(one.as_json()) for one in kept)
            return 0
        lines = [
            [*_cells(one.token), ", ".join(map(str, one.ids)), "" if one.is_utf8 else "half"]
            for one in kept
        ]
        _print([[*_HEAD, "becomes", ""], *lines])
        return 0
    tokens = _limited(args, _find(args, encoding))
    if args.json:
        write_lines(json.dumps(token.as_json()) for token in tokens)
    else:
        _print([_HEAD, *map(_cells, tokens)])
    return 0


def _find(args: argparse.Namespace, encoding: Encoding) -> list[Token]:
    from ..views import vocabulary_lists, vocabulary_search

    every = encoding.n_vocab
    if args.search is not None:
        if not args.search:
            raise Misused("--search needs a text")
        return vocabulary_search.find_text(encoding, args.search, every)
    if args.bytes is not None:
        try:
            data = vocabulary_search.parse_hex(args.bytes)
        except ValueError as error:
            raise Misused(f"--bytes: {error}") from None
        return vocabulary_search.find_bytes(encoding, data, every)
    if args.half_characters:
        return vocabulary_lists.half_characters(encoding)
    return vocabulary_lists.longest(encoding, args.limit or every)


def _show_duplicates(args: argparse.Namespace, encoding: Encoding) -> int:
    from ..views import vocabulary_lists

    found = _limited(args, vocabulary_lists.duplicates(encoding))
    if args.json:
        write_lines(json.dumps(one.as_json()) for one in found)
        return 0
    rows = [
        [visible(one.text), str(len(one.tokens)), " ".join(token.shown for token in one.tokens)]
        for one in found
    ]
    _print([["text", "tokens", "which"], *rows], right=(False, True, False))
    return 0


def _show_page(args: argparse.Namespace, encoding: Encoding) -> int:
    from ..views import vocabulary_search

    try:
        page = vocabulary_search.token_page(encoding, args.id)
    except (KeyError, OverflowError):
        raise Refused(f"{shown(encoding.name)} has no id {args.id}") from None
    write_lines([json.dumps(page.as_json())] if args.json else _page_lines(page))
    return 0


def _page_lines(page: TokenPage) -> list[str]:
    token = page.token
    rank = "special" if token.is_special else "-" if token.rank is None else str(token.rank)
    shares = ", ".join(f"{name} {share:.0%}" for name, share in page.scripts.items())
    lines = [
        f"text   {token.shown}",
        f"id     {token.id}",
        f"rank   {rank}",
        f"bytes  {token.bytes.hex(' ')}{'' if page.is_utf8 else '  (not UTF-8 by itself)'}",
        f"is     {shares}",
    ]
    if page.merge_tree:
        lines += ["merges", *_tree_lines(page)]
    if page.neighbours:
        near = [f"  {one.id:>7}  {one.shown}" for one in page.neighbours]
        lines += ["neighbours", *near]
    return lines


def _tree_lines(page: TokenPage) -> list[str]:
    """The tree, indented. Nodes come before their parts, so one walk is enough."""
    depths = [0] * len(page.merge_tree)
    lines = []
    for at, node in enumerate(page.merge_tree):
        for part in node.parts or ():
            depths[part] = depths[at] + 1
        lines.append(f"  {'  ' * depths[at]}{node.shown}  rank {node.rank}")
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


def _print(rows: Sequence[Sequence[str]], right: Sequence[bool] = (True, True, True)) -> None:
    sides = [*right, *[False] * (len(rows[0]) - len(right))]
    write_lines(columns(rows, sides))


def _limited(args: argparse.Namespace, found: list[Any]) -> list[Any]:
    if args.limit and len(found) > args.limit:
        say(f"{args.limit} of {len(found):,} are shown; --limit 0 shows all")
        return found[: args.limit]
    return found
