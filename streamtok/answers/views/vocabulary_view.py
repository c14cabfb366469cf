"""Look up tokens of a vocabulary, describe one in full, and list those that are unusual."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...vocabulary.table import NO_ID
from .merge_table import MergeTable, merge_table
from .result import Result
from .tokens import Token, describe_ids
from .visible import visible

if TYPE_CHECKING:
    from ...encoding import Encoding


_NEAR = 4  # neighbours of a token to show on each side


@dataclass(frozen=True, slots=True)
class MergeNode(Result):
    """A token in the tree of merges, and the two nodes of the tree that merge into it."""

    bytes: bytes
    shown: str
    id: int | None
    rank: int
    parts: tuple[int, int] | None  # indices in `TokenPage.merge_tree`; None if no merge makes it


@dataclass(frozen=True, slots=True)
class TokenPage(Result):
    """A token, its tree of merges down to single bytes, and its neighbours by id."""

    encoding: str
    token: Token
    merge_tree: list[MergeNode]  # each node before its parts; empty for a token without a rank
    neighbours: list[Token]  # in order of id, without the token itself
    is_utf8: bool


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A token, and the ids that its text becomes instead."""

    token: Token
    ids: list[int]

    @property
    def is_utf8(self) -> bool:
        """Whether the token is valid text by itself."""
        return is_utf8(self.token.bytes)

    def as_json(self) -> dict[str, Any]:
        """dict: the token's values, `becomes` and `is_utf8`."""
        return {**self.token.as_json(), "becomes": self.ids, "is_utf8": self.is_utf8}


@dataclass(frozen=True, slots=True)
class Duplicates(Result):
    """Tokens whose texts differ only in surrounding white space and case."""

    text: str
    tokens: list[Token]


def every_id(encoding: Encoding) -> list[int]:
    """list[int]: all ids, including special ones, in order."""
    vocabulary = encoding.definition.vocabulary
    ids = {
        *vocabulary.ids.tolist(),
        *encoding.definition.decode_only,
        *encoding.definition.specials.ids,
    }
    if vocabulary.byte_ids is not None:
        ids.update(vocabulary.byte_ids.tolist())
    return sorted(ids - {NO_ID})


def find_text(encoding: Encoding, text: str) -> list[Token]:
    """list[Token]: the tokens that contain this text; the shortest first, then by id.

    Case-sensitive. Looks at every token.
    """
    return find_bytes(encoding, text.encode("utf-8", "surrogateescape"))


def find_bytes(encoding: Encoding, data: bytes) -> list[Token]:
    """list[Token]: the tokens that contain these bytes; the shortest first, then by id."""
    tokens = ((encoding.decode_single_token_bytes(id), id) for id in every_id(encoding))
    found = sorted((len(token), id) for token, id in tokens if data in token)
    return list(describe_ids(encoding, [id for _, id in found]))


def is_utf8(data: bytes) -> bool:
    """Whether these bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def parse_hex(text: str) -> bytes:
    """bytes: parsed from text like "e6 9d b1" or "E69DB1". Raises ValueError for anything else."""
    if not re.fullmatch(r"(?:\s*[0-9A-Fa-f]{2})+\s*", text):
        raise ValueError(f"{text!r} must be bytes in hexadecimal, such as e6 9d b1")
    return bytes.fromhex(text)


def token_page(encoding: Encoding, id: int) -> TokenPage:
    """TokenPage: all details of a token. Raises KeyError for an unknown id."""
    (token,) = describe_ids(encoding, [id])
    table = merge_table(encoding)
    number = None if token.is_special else table.number_of.get(id)
    ids = every_id(encoding)
    at = bisect.bisect_left(ids, id)
    near = [one for one in ids[max(at - _NEAR, 0) : at + _NEAR + 1] if one != id]
    return TokenPage(
        encoding.name,
        token,
        [] if number is None else _tree(table, number),
        list(describe_ids(encoding, near)),
        is_utf8(token.bytes),
    )


def unreachable(encoding: Encoding) -> list[Unreachable]:
    """list[Unreachable]: the tokens with `encode(decode_bytes([id])) != [id]`, by id.

    Longer text may still produce such a token. Tokens that are UTF-8 by themselves come first;
    other bytes are kept ("surrogateescape"). Special tokens are excluded, since text becomes them
    only if they are allowed. Takes about a second for 200 000 tokens.
    """
    ids = _ordinary_ids(encoding)
    texts = [encoding.decode_bytes([id]) for id in ids]
    rows = encoding.encode_ordinary_batch(texts, errors="surrogateescape", num_threads=2)
    odd = [(id, row) for id, row in zip(ids, rows, strict=True) if row != [id]]
    tokens = describe_ids(encoding, [id for id, _ in odd])
    found = [Unreachable(token, row) for token, (_, row) in zip(tokens, odd, strict=True)]
    return sorted(found, key=lambda one: (not one.is_utf8, one.token.id))


def half_characters(encoding: Encoding) -> list[Token]:
    """list[Token]: the tokens that are not UTF-8 by themselves, in order of id."""
    return list(describe_ids(encoding, [id for id, text in _texts(encoding) if text is None]))


def longest(encoding: Encoding, limit: int | None = None) -> list[Token]:
    """list[Token]: tokens that are not special, longest first, then by id.

    limit: most tokens to return; None for all.
    """
    ids = _ordinary_ids(encoding)
    ids.sort(key=lambda id: (-len(encoding.decode_single_token_bytes(id)), id))
    return list(describe_ids(encoding, ids[:limit]))


def duplicates(encoding: Encoding) -> list[Duplicates]:
    """list[Duplicates]: tokens that differ only in surrounding white space and case.

    The largest group comes first. Tokens that are white space or not UTF-8 are left out.
    """
    groups: dict[str, list[int]] = {}
    for id, text in _texts(encoding):
        if text is not None and (key := text.strip().casefold()):
            groups.setdefault(key, []).append(id)
    found = [(key, ids) for key, ids in groups.items() if len(ids) > 1]
    found.sort(key=lambda one: (-len(one[1]), one[1][0]))
    return [Duplicates(key, list(describe_ids(encoding, ids))) for key, ids in found]


def _ordinary_ids(encoding: Encoding) -> list[int]:
    return [id for id in every_id(encoding) if not encoding.is_special_token(id)]


def _texts(encoding: Encoding) -> Iterator[tuple[int, str | None]]:
    """The text of each id; None if it is not UTF-8."""
    for id in _ordinary_ids(encoding):
        try:
            yield id, encoding.decode_single_token_bytes(id).decode()
        except UnicodeDecodeError:
            yield id, None


def _tree(table: MergeTable, number: int) -> list[MergeNode]:
    """Each node before its parts. No recursion, since a token may be 65 535 merges deep."""
    waiting = [number]
    numbers: list[int] = []
    while waiting:
        one = waiting.pop()
        numbers.append(one)
        parts = table.parts(one)
        if parts is not None:
            waiting += reversed(parts)
    # In preorder, the left part follows its token, and the right part follows the left subtree.
    sizes = [1] * len(numbers)
    children: list[tuple[int, int] | None] = [None] * len(numbers)
    for at in range(len(numbers) - 1, -1, -1):
        if table.parts(numbers[at]) is not None:
            left = at + 1
            right = left + sizes[left]
            sizes[at] += sizes[left] + sizes[right]
            children[at] = (left, right)
    nodes = []
    for one, pair in zip(numbers, children, strict=True):
        token, id = table.tokens[one], table.ids[one]
        nodes.append(
            MergeNode(token, visible(token), None if id == NO_ID else id, table.rank(one), pair)
        )
    return nodes
