"""Finds tokens of a vocabulary, and says all there is to say about one."""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...vocabulary.table import NO_ID
from .merge_table import MergeTable, merge_table
from .result import Result
from .tokens import Token, describe_ids
from .visible import visible

if TYPE_CHECKING:
    from ...encoding import Encoding


@dataclass(frozen=True, slots=True)
class MergeNode(Result):
    """A token in the tree of merges, and which nodes of the tree it is made of."""

    bytes: bytes
    shown: str
    id: int | None
    rank: int
    parts: tuple[int, int] | None  # places in `TokenPage.merge_tree`; None: no merge makes it


@dataclass(frozen=True, slots=True)
class TokenPage(Result):
    """A token: which two merge into it, and so on down to bytes; neighbours by id; scripts."""

    encoding: str
    token: Token
    merge_tree: list[MergeNode]  # the token first, each before its parts; empty if special
    neighbours: list[Token]  # in order of id, without the token itself
    scripts: dict[str, float]  # shares of its characters, the greatest first
    is_utf8: bool


def every_id(encoding: Encoding) -> list[int]:
    """list[int]: all ids that there are, special ones among them, in order."""
    vocabulary = encoding.definition.vocabulary
    ids = {
        *vocabulary.ids.tolist(),
        *encoding.definition.decode_only,
        *encoding.definition.specials.ids,
    }
    if vocabulary.byte_ids is not None:
        ids.update(vocabulary.byte_ids.tolist())
    return sorted(ids - {NO_ID})


def find_text(encoding: Encoding, text: str, limit: int = 100) -> list[Token]:
    """list[Token]: those whose text contains this; the token itself first, then by length.

    Case counts. Costs a look at every token.
    """
    return find_bytes(encoding, text.encode("utf-8", "surrogateescape"), limit)


def find_bytes(encoding: Encoding, data: bytes, limit: int = 100) -> list[Token]:
    """list[Token]: those that contain these bytes; the shortest first, then by id."""
    tokens = ((encoding.decode_single_token_bytes(id), id) for id in every_id(encoding))
    found = sorted((len(token), id) for token, id in tokens if data in token)
    return list(describe_ids(encoding, [id for _, id in found[:limit]]))


def is_utf8(data: bytes) -> bool:
    """Whether these bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def parse_hex(text: str) -> bytes:
    """bytes: "e6 9d b1" or "E69DB1". Raises ValueError for anything else."""
    if not re.fullmatch(r"(?:\s*[0-9A-Fa-f]{2})+\s*", text):
        raise ValueError(f"{text!r} must be bytes in hexadecimal, such as e6 9d b1")
    return bytes.fromhex(text)


def token_page(encoding: Encoding, id: int, neighbours: int = 4) -> TokenPage:
    """TokenPage: all about a token. neighbours: how many on each side. KeyError for no such id."""
    (token,) = describe_ids(encoding, [id])
    table = merge_table(encoding)
    number = None if token.is_special else table.number_of.get(id)
    ids = every_id(encoding)
    place = bisect.bisect_left(ids, id)
    near = [one for one in ids[max(place - neighbours, 0) : place + neighbours + 1] if one != id]
    return TokenPage(
        encoding.name,
        token,
        [] if number is None else _tree(table, number),
        list(describe_ids(encoding, near)),
        script_shares(token.bytes.decode("utf-8", "surrogateescape")),
        is_utf8(token.bytes),
    )


def script_shares(text: str) -> dict[str, float]:
    """dict: the share of each script in the characters of a text, the greatest first.

    Letters and marks count by the first word of their Unicode name, such as LATIN, CYRILLIC or CJK;
    others as digits, spaces, punctuation, symbols, controls or bytes.

    >>> script_shares("да ok")
    {'CYRILLIC': 0.4, 'LATIN': 0.4, 'spaces': 0.2}
    """
    counts = Counter(map(_script, text))
    order = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return {script: count / len(text) for script, count in order}


_KINDS = {"N": "digits", "Z": "spaces", "P": "punctuation", "S": "symbols", "C": "controls"}


def _script(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return "bytes"
    if character.isspace():
        return "spaces"
    kind = unicodedata.category(character)[0]
    if kind in _KINDS:
        return _KINDS[kind]
    return unicodedata.name(character, "unnamed").split(" ")[0]


def _tree(table: MergeTable, number: int) -> list[MergeNode]:
    """Each node before its parts: no recursion, as a token may be 65 535 merges deep."""
    waiting = [number]
    numbers: list[int] = []
    while waiting:
        one = waiting.pop()
        numbers.append(one)
        parts = table.parts(one)
        if parts is not None:
            waiting += reversed(parts)
    # In preorder the left part follows its token, the right one what the left one is made of.
    sizes = [1] * len(numbers)
    places: list[tuple[int, int] | None] = [None] * len(numbers)
    for at in range(len(numbers) - 1, -1, -1):
        if table.parts(numbers[at]) is not None:
            left = at + 1
            right = left + sizes[left]
            sizes[at] += sizes[left] + sizes[right]
            places[at] = (left, right)
    nodes = []
    for one, place in zip(numbers, places, strict=True):
        token, id = table.tokens[one], table.ids[one]
        nodes.append(
            MergeNode(token, visible(token), None if id == NO_ID else id, table.rank(one), place)
        )
    return nodes
