"""`streamtok languages`: the tokens of one text in many languages."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import encoding_options, options
from .messages import Misused, Refused, shown
from .options import add_option
from .paint import columns, write_lines

if TYPE_CHECKING:
    from ..answers.views.languages import Language, LanguageRow, LanguageTable

_EXAMPLES = [
    "@ --sort o200k_base",
    "@ -e cl100k_base -e tokenizer.json --measure english",
    "@ --only en,hi,ja --json",
]
_DEFAULT = ["r50k_base", "cl100k_base", "o200k_base"]
_MEASURES: dict[str, tuple[str, Callable[[LanguageRow], list[str]]]] = {
    "tokens": ("tokens", lambda row: [f"{count:,}" for count in row.tokens]),
    "character": (
        "tokens per character",
        lambda row: [f"{rate:.3f}" for rate in row.tokens_per_character],
    ),
    "byte": ("tokens per byte", lambda row: [f"{rate:.3f}" for rate in row.tokens_per_byte]),
    "english": (
        "tokens, as a multiple of English",
        lambda row: [f"{rate:.2f}" for rate in row.times_english],
    ),
}


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "languages",
        run,
        "show the tokens of one text in many languages",
        _EXAMPLES,
    )
    add_option(
        parser,
        "-e --encoding NAME",
        f"an encoding, as for the other commands; any number of times "
        f"(default: {', '.join(_DEFAULT)})",
        action="append",
    )
    add_option(
        parser,
        "--only LANGUAGE,...",
        "languages by their BCP 47 tags or the beginning of their names, such as en,hi,germ",
    )
    group = parser.add_argument_group("what is shown")
    add_option(
        group,
        "--measure",
        "tokens, or tokens per character, per byte, or as a multiple of the English text's "
        "(default: character)",
        default="character",
        choices=tuple(_MEASURES),
    )
    add_option(
        group,
        "--sort name|ENCODING",
        "by name, or by the measure in an encoding, the greatest first (default: name)",
        default="name",
    )
    add_option(group, "--json", "one object with all measures")


def run(args: argparse.Namespace) -> int:
    from ..answers.views.languages import compare_languages, list_languages

    names = args.encoding or _DEFAULT
    encodings = [encoding_options.load_named(name) for name in names]
    chosen = list(list_languages())
    if args.only is not None:
        found = [one for wanted in args.only.split(",") for one in _find(chosen, wanted)]
        chosen = list(dict.fromkeys(found))
    table = compare_languages(encodings, chosen)
    _sort(args, table)
    if args.json:
        write_lines([json.dumps(table.as_json())])
        return 0
    what, measure = _MEASURES[args.measure]
    head = ["code", "language", *map(shown, table.encodings)]
    rows = [head, *([row.code, row.name, *measure(row)] for row in table.rows)]
    about = f"Declaration of Human Rights, articles 1 to 3: {what}"
    write_lines([about, *columns(rows, [False, False, *[True] * (len(head) - 2)])])
    return 0


def _find(known: list[Language], wanted: str) -> list[Language]:
    """The languages of a tag, or else all that begin with it, or else by name. Raises Refused."""
    start = wanted.casefold()
    tests: list[Callable[[Language], bool]] = [
        lambda one: one.code.casefold() == start,
        lambda one: one.code.casefold().startswith(f"{start}-"),
        lambda one: one.name.casefold().startswith(start),
    ]
    for test in tests if start else []:
        if found := [one for one in known if test(one)]:
            return found
    raise Refused(f"there is no text in {wanted!r}; streamtok languages shows codes and names")


def _sort(args: argparse.Namespace, table: LanguageTable) -> None:
    if args.sort == "name":
        return
    if args.sort not in table.encodings:
        raise Misused(f"--sort must be name or one of {', '.join(table.encodings)}")
    which = table.encodings.index(args.sort)
    keys: dict[str, Callable[[LanguageRow], float]] = {
        "tokens": lambda row: row.tokens[which],
        "character": lambda row: row.tokens_per_character[which],
        "byte": lambda row: row.tokens_per_byte[which],
        "english": lambda row: row.times_english[which],
    }
    table.rows.sort(key=keys[args.measure], reverse=True)
