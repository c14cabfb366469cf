"""Where grapheme clusters end: what a reader takes for one character, `\\X` of `regex`.

Whether a cluster ends at an offset depends on the character after it and on those before it, as far
as the cluster reaches back. So a cluster is looked for from some characters before the places that
are asked about; a row of flags, which are pairs of letters, from where it begins.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

from .text_window import TextWindow, character_ends

__all__ = ["grapheme_ends"]

_BLOCK = 64  # places that are looked at together
_REACH = 1 << 10  # characters or bytes before them that may matter; no real cluster has as many
_AHEAD = 4  # bytes of the character after an offset, at most
_FLAG_LETTER = re.compile("[\U0001f1e6-\U0001f1ff]\\Z")


def grapheme_ends(source: TextWindow, begin: int, places: Iterable[int]) -> Iterator[int]:
    """The offsets at which a cluster ends, in their order.

    places: where characters end, not after the end of the source. begin: a place at or before all
    of them where a cluster begins.
    """
    left = iter(places)
    while block := list(itertools.islice(left, _BLOCK)):
        low = _beginning(source, begin, min(block))
        text = source.at(low, max(block) + _AHEAD)
        ends = character_ends(text, 0, len(text))
        starts = {low + ends[match.start()] for match in _cluster().finditer(_characters(text))}
        yield from (place for place in block if place in starts or source.is_end(place))


@functools.cache
def _cluster() -> Any:
    import regex  # takes longer to import than all of this package

    return regex.compile(r"\X")


def _beginning(source: TextWindow, begin: int, place: int) -> int:
    """Where to look for clusters from on, for those that end at `place`."""
    reach = _REACH
    while place - reach > begin:
        start = max(begin, place - reach - _AHEAD)
        text = source.at(start, place - reach + _AHEAD)
        first = character_ends(text, place - reach - start, len(text))[0]
        if not _FLAG_LETTER.search(_characters(text[:first])):
            return start + first
        reach *= 4
    return begin


def _characters(text: Any) -> str:
    """As many characters as `character_ends` has places for."""
    if not isinstance(text, str):
        return bytes(text).decode("utf-8", "surrogateescape")
    return text
