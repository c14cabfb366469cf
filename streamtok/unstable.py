"""`encode_with_unstable` and `_encode_bytes`, by tiktoken's definitions: slow, for small texts.

tiktoken calls the tokens before the last pre-token stable, and lists ways in which the rest may go
on: every token that begins with the unstable bytes, every token that straddles their end, and the
rest with its last blank split off. Its own comments call this a quick and dirty fix; it is here so
that programs written for tiktoken get the same answers. Final ids come from `StreamEncoder`.
"""

from __future__ import annotations

import bisect
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from ._core.encode import SpecialMatcher

if TYPE_CHECKING:
    from .definition import EncodingDefinition

_BLANKS = b" \n\t"


def encode_with_unstable(
    encoding: EncodingDefinition, text: str, allowed: AbstractSet[str]
) -> tuple[list[int], list[list[int]]]:
    """(stable ids, completions) of `text`; the caller has refused what is disallowed."""
    ids, last = _encode_and_last_piece(encoding, text, allowed)
    if last == 0:
        return ids, []
    last = _widen_over_blanks(encoding, ids, last)
    rest = encoding.decode_bytes(ids[len(ids) - last :])
    stable = ids[: len(ids) - last]
    if not rest:
        return stable, []
    vocabulary = encoding.token_byte_values()
    found: set[tuple[int, ...]] = {
        (encoding.encode_single_token(token),) for token in _starting_with(vocabulary, rest)
    }
    for cut in range(1, len(rest)):
        for token in _starting_with(vocabulary, rest[cut:]):
            found.add(_first_ids(encoding, rest[:cut] + token, len(rest)))
    found |= _without_last_blank(encoding, rest)
    return stable, [list(ids) for ids in found]


def encode_bytes(encoding: EncodingDefinition, data: bytes) -> list[int]:
    """The ids of `data`. What is not UTF-8, and all behind it, belongs to the last pre-token before
    it, without which a character that is cut off would be merged by itself.
    """
    try:
        return encoding.encode_ordinary(data.decode())
    except UnicodeDecodeError as error:
        valid = error.start
    ids, last = _encode_and_last_piece(encoding, data[:valid].decode(), frozenset())
    if last:
        last = _widen_over_blanks(encoding, ids, last)
    stable = ids[: len(ids) - last]
    return stable + _merge(encoding, encoding.decode_bytes(ids[len(stable) :]) + data[valid:])


def _encode_and_last_piece(
    encoding: EncodingDefinition, text: str, allowed: AbstractSet[str]
) -> tuple[list[int], int]:
    """The ids, and how many of them are the last pre-token's (0 after a special token)."""
    matcher = SpecialMatcher(
        encoding._preferred_specials, frozenset(allowed) & encoding.special_tokens_set, ()
    )
    data = text.encode()
    start, end, _ = matcher.split(data)[-1]
    segment = data[start:end].decode()
    ids = encoding.encode(text, allowed_special=allowed, disallowed_special=())
    if encoding.pattern is not None:
        pretokens = encoding.pattern.findall(segment)
    else:
        from .reference.bpe import split

        pretokens = split(encoding._pat_str, segment)
    return ids, len(encoding._encode_single_piece(pretokens[-1])) if pretokens else 0


def _widen_over_blanks(encoding: EncodingDefinition, ids: list[int], last: int) -> int:
    """A blank last pre-token may grow to the left, since `\\s*[\\r\\n]+` looks ahead."""

    def is_blank(token: int) -> bool:
        return not encoding.is_special_token(token) and not encoding.decode_single_token_bytes(
            token
        ).strip(_BLANKS)

    if is_blank(ids[len(ids) - last]):
        while last < len(ids) and is_blank(ids[len(ids) - last - 1]):
            last += 1
    return last


def _starting_with(vocabulary: list[bytes], prefix: bytes) -> list[bytes]:
    low = bisect.bisect_left(vocabulary, prefix)
    high = low
    while high < len(vocabulary) and vocabulary[high].startswith(prefix):
        high += 1
    return vocabulary[low:high]


def _first_ids(encoding: EncodingDefinition, data: bytes, size: int) -> tuple[int, ...]:
    """The first ids of `data` that cover at least `size` bytes."""
    try:
        ids = encoding.encode_ordinary(data.decode())
    except UnicodeDecodeError:
        ids = _merge(encoding, data)
    covered = 0
    for count, token in enumerate(ids, 1):
        covered += len(encoding.decode_single_token_bytes(token))
        if covered >= size:
            return tuple(ids[:count])
    return tuple(ids)


def _without_last_blank(encoding: EncodingDefinition, rest: bytes) -> set[tuple[int, ...]]:
    for size in range(1, 5):
        try:
            character = rest[-size:].decode()
        except UnicodeDecodeError:
            continue
        if len(rest) > size and character.isspace() and character not in "\x1c\x1d\x1e\x1f":
            return {tuple(_merge(encoding, rest[:-size]) + _merge(encoding, rest[-size:]))}
        break
    return set()


def _merge(encoding: EncodingDefinition, data: bytes) -> list[int]:
    return encoding._encode_single_piece(data)
