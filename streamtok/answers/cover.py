"""The least number of tokens that can spell a text: a lower bound for every way to encode it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..vocabulary.table import Vocabulary
    from .text_settings import Settings

__all__ = ["able_from"]

_lengths: weakref.WeakKeyDictionary[Vocabulary, list[list[int]]] = weakref.WeakKeyDictionary()


def able_from(settings: Settings, data: bytes, prefix: bytes, budget: int) -> set[int]:
    """The places from which `budget` tokens, or fewer, can spell the rest of `data`.

    With `prefix` before it, or without; both may count. From the end backwards, and no further than
    a token is long beyond the first such place. Costs a look-up for each length that tokens with
    the same first byte have.
    """
    lengths = _lengths_by_first_byte(settings.encoding._vocabulary)
    find = settings.encoding._table.find
    specials = [one for one in map(str.encode, settings.matcher.allowed) if one in data]
    longest = max([1, *map(max, filter(None, lengths)), *map(len, specials)])
    too_many = budget + 1
    end = len(data)
    fewest = [0]  # fewest[end - place]
    able = {end}
    unable = 0  # places in a row
    for place in range(end - 1, -1, -1):
        best = fewest[-1]
        for length in lengths[data[place]]:
            if length > end - place:
                break
            rest = fewest[end - place - length]
            if rest < best and find(data[place : place + length]) is not None:
                best = rest
        for special in specials:
            if data.startswith(special, place):
                best = min(best, fewest[end - place - len(special)])
        best = min(best + 1, too_many)
        fewest.append(best)
        if best > budget and prefix:
            best = _with_prefix(find, lengths, data, prefix, place, fewest)
        if best <= budget:
            able.add(place)
        unable = unable + 1 if fewest[-1] > budget else 0
        if unable > longest + len(prefix):
            break
    return able


def _with_prefix(
    find: Callable[[bytes], int | None],
    lengths: list[list[int]],
    data: bytes,
    prefix: bytes,
    place: int,
    fewest: list[int],
) -> int:
    """The least number for prefix + data[place:], if one token may hold all of the prefix."""
    end = len(data)
    best = fewest[-1] + 1  # by itself
    for length in lengths[prefix[0]]:
        size = length - len(prefix)
        if 0 <= size <= end - place:
            token = prefix + data[place : place + size]
            if find(token) is not None:
                best = min(best, 1 + fewest[end - place - size])
    return best


def _lengths_by_first_byte(vocabulary: Vocabulary) -> list[list[int]]:
    """For each byte, the lengths of the tokens that begin with it, rising, except for 1."""
    found = _lengths.get(vocabulary)
    if found is None:
        offsets = vocabulary.offsets.astype(np.int64)
        firsts = np.frombuffer(vocabulary.tokens, np.uint8)[offsets[:-1]].astype(np.int64)
        pairs = np.unique(firsts << 32 | np.diff(offsets)).tolist()
        found = [[] for _ in range(256)]
        for pair in pairs:
            if pair & 0xFFFFFFFF > 1:
                found[pair >> 32].append(pair & 0xFFFFFFFF)
        _lengths[vocabulary] = found
    return found
