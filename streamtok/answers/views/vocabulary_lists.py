"""Lists of tokens that are odd in some way: their own text is not them, or cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .result import Result
from .tokens import Token, describe_ids
from .vocabulary_search import every_id, is_utf8

if TYPE_CHECKING:
    from ...encoding import Encoding


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A token, and the ids that its text becomes instead."""

    token: Token
    ids: list[int]

    @property
    def is_utf8(self) -> bool:
        """Whether it is a text by itself."""
        return is_utf8(self.token.bytes)

    def as_json(self) -> dict[str, Any]:
        """dict: that of the token, `becomes` and `is_utf8`."""
        return {**self.token.as_json(), "becomes": self.ids, "is_utf8": self.is_utf8}


@dataclass(frozen=True, slots=True)
class Duplicates(Result):
    """Tokens that are one text except for white space around it and case."""

    text: str
    tokens: list[Token]


def unreachable(encoding: Encoding, num_threads: int = 2) -> list[Unreachable]:
    """list[Unreachable]: the tokens with `encode(decode_bytes([id])) != [id]`, by id.

    By that definition: a longer text may still have such a token. Those that are UTF-8 by
    themselves come first. Bytes that are not are kept ("surrogateescape"). Special tokens are left
    out: text becomes them only where they are allowed. Costs about a second for 200 000 tokens.
    """
    ids = _ordinary_ids(encoding)
    texts = [encoding.decode_bytes([id]) for id in ids]
    rows = encoding.encode_ordinary_batch(texts, errors="surrogateescape", num_threads=num_threads)
    odd = [(id, row) for id, row in zip(ids, rows, strict=True) if row != [id]]
    tokens = describe_ids(encoding, [id for id, _ in odd])
    found = [Unreachable(token, row) for token, (_, row) in zip(tokens, odd, strict=True)]
    return sorted(found, key=lambda one: (not one.is_utf8, one.token.id))


def half_characters(encoding: Encoding) -> list[Token]:
    """list[Token]: the tokens that are not UTF-8 by themselves, in order of id."""
    return list(describe_ids(encoding, [id for id, text in _texts(encoding) if text is None]))


def longest(encoding: Encoding, limit: int = 100) -> list[Token]:
    """list[Token]: those with the most bytes, special ones not; of equals the smaller id first."""
    ids = _ordinary_ids(encoding)
    ids.sort(key=lambda id: (-len(encoding.decode_single_token_bytes(id)), id))
    return list(describe_ids(encoding, ids[:limit]))


def duplicates(encoding: Encoding) -> list[Duplicates]:
    """list[Duplicates]: texts of several tokens that differ in spaces and case; the most first.

    Tokens of white space alone, and those that are not UTF-8, are left out.
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
    """The text of each id; None where it is not UTF-8."""
    for id in _ordinary_ids(encoding):
        try:
            yield id, encoding.decode_single_token_bytes(id).decode()
        except UnicodeDecodeError:
            yield id, None
