"""`streamtok vocab`: looks up tokens of a vocabulary, and lists those that are odd in some way.

A line of JSON for each; the page of `streamtok view` shows the same in tables.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import encoding_options, options
from .argument_types import parse_natural
from .messages import Misused, Refused, say, shown
from .paint import write_lines

if TYPE_CHECKING:
    from ..encoding import Encoding

_EXAMPLES = [
    "@ -e o200k_base --unreachable",
    "@ --search token | jq -r .shown",
    "@ --bytes 'e6 9d' --limit 5",
    "@ --id 1917 | jq .merge_tree",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers, "vocab", run, "look up tokens, and list odd ones, as lines of JSON", _EXAMPLES
    )
    encoding_options.add_encoding(parser)
    kinds = parser.add_argument_group("which tokens (one of these)")
    kind = kinds.add_mutually_exclusive_group(required=True)
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
    parser.add_argument(
        "--limit",
        type=parse_natural,
        default=50,
        metavar="N",
        help="how many, at most; 0: all (default: 50)",
    )


def run(args: argparse.Namespace) -> int:
    encoding = encoding_options.load_encoding(args)
    found = _find(args, encoding)
    kept = found[: args.limit or len(found)]
    if len(kept) < len(found):
        say(f"{len(kept)} of {len(found):,} are shown; --limit 0 shows all")
    write_lines(json.dumps(one.as_json(), ensure_ascii=False) for one in kept)
    return 0


def _find(args: argparse.Namespace, encoding: Encoding) -> Sequence[Any]:
    from ..views import vocabulary_lists, vocabulary_search

    every = encoding.n_vocab
    if args.id is not None:
        try:
            return [vocabulary_search.token_page(encoding, args.id)]
        except (KeyError, OverflowError):
            raise Refused(f"{shown(encoding.name)} has no id {args.id}") from None
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
    if args.longest:
        return vocabulary_lists.longest(encoding, args.limit or every)
    lists: dict[str, Callable[[Encoding], Sequence[Any]]] = {
        "unreachable": vocabulary_lists.unreachable,
        "half_characters": vocabulary_lists.half_characters,
        "duplicates": vocabulary_lists.duplicates,
    }
    return next(made(encoding) for name, made in lists.items() if getattr(args, name))
