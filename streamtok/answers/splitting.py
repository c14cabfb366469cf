"""Splits a text of any length into chunks of limited size, holding one chunk in memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engines.texts import check_budget
from .boundaries import Boundaries, levels_of
from .prefixes import Prefixes
from .suffixes import longest_suffix

if TYPE_CHECKING:
    from .._types import AnyText
    from .text_settings import Settings
    from .text_window import TextWindow

__all__ = ["Chunk", "split"]


class Chunk(NamedTuple):
    """A part of a source: source[start:stop] is `text`, which by itself has `n_tokens` ids.

    Positions count the characters of a str, and the bytes of anything else.
    """

    text: Any
    start: int
    stop: int
    n_tokens: int


def split(
    settings: Settings,
    source: AnyText,
    max_tokens: int,
    overlap: int,
    boundary: Any,
) -> Iterator[Chunk]:
    """The chunks of a source. Arguments are checked now; the source is read chunk by chunk."""
    budget, added = settings.budget(max_tokens, 1), settings.template.size
    overlap = check_budget("overlap", overlap)
    if overlap >= budget:
        ids = f", less the {added} ids of add_special_tokens" if added else ""
        raise ValueError(
            f"overlap must be less than max_tokens, which is {max_tokens}{ids}, not {overlap}: "
            "each chunk must add new text"
        )
    settings, text = settings.opened(source)
    levels = levels_of(boundary, text.is_str)
    return _Splitting(settings, text, budget, overlap, levels).chunks()


class _Splitting:
    def __init__(
        self,
        settings: Settings,
        source: TextWindow,
        budget: int,
        overlap: int,
        levels: tuple[Any, ...],
    ) -> None:
        self.settings = settings
        self.source = source
        self.budget = budget
        self._overlap = overlap
        self._levels = levels
        self.each = 3.3  # characters per token in the chunk before
        self._bytes = (0, 0)  # a position, and the bytes of UTF-8 before it

    def chunks(self) -> Iterator[Chunk]:
        source = self.source
        start = stop = 0
        while not source.is_end(stop):  # an overlap alone is not a chunk
            start, stop, n_tokens = self._next(start, stop)
            text = source.at(start, stop)
            self.each = (stop - start) / max(n_tokens, 1)
            yield Chunk(text, start, stop, n_tokens + self.settings.template.size)
            start = self._overlap_of(text, start, stop, self._overlap)
            self._bytes = start, self.bytes_before(start)
            source.drop(start)

    def bytes_before(self, start: int) -> int:
        """The offset in bytes of a position that is not before the current chunk."""
        position, offset = self._bytes
        between = self.source.text_at(position, start)
        if isinstance(between, str):
            between = between.encode("utf-8", "surrogatepass")
        return offset + len(between)

    def _overlap_of(self, text: Any, start: int, stop: int, size: int) -> int:
        """Where the last `size` tokens of a chunk begin; always after its start."""
        if not size:
            return stop
        kept, _ = longest_suffix(self.settings, text, size)
        return start + kept if kept else stop

    def _next(self, start: int, done: int) -> tuple[int, int, int]:
        """(start, stop, number of tokens) of the chunk after `done`, whose overlap begins at
        `start`, or later if the next boundary is too far from there.
        """
        starts = self._starts(start, done)
        searches = [_Search(self, next(starts))]
        for level in self._levels:
            for i in itertools.count():
                if i == len(searches):
                    later = next(starts, None)
                    if later is None:
                        break
                    searches.append(_Search(self, later))
                found = searches[i].find(level, done)
                if found is not None:
                    return searches[i].start, *found
        at = self.source.at(done, done + 4)
        raise ValueError(
            f"the character at {'position' if self.source.is_str else 'byte'} {done}, "
            f"in {at!r}, has more than {self.budget} tokens by itself: raise max_tokens"
        )

    def _starts(self, start: int, done: int) -> Iterator[int]:
        """Where a chunk may begin: with all of the overlap, half of it, …, none of it."""
        yield start
        text = self.source.at(start, done)
        first, size = start, self._overlap
        while start != done:
            size //= 2
            later = self._overlap_of(text, first, done, size)
            if later != start:
                yield later
            start = later


class _Search:
    """Finds the end of a chunk that begins at `start`."""

    def __init__(self, splitting: _Splitting, start: int) -> None:
        self.start = start
        self._budget = splitting.budget
        settings, source = splitting.settings, splitting.source
        self._boundaries = Boundaries(settings, source, start)
        self._prefixes = Prefixes(settings, source, start, splitting.bytes_before(start))
        self._is_rest = self._prefixes.advance(self._budget, splitting.each)

    def find(self, level: Any, done: int) -> tuple[int, int] | None:
        """(stop, number of tokens) of the longest chunk that ends at a boundary after `done`."""
        prefixes = self._prefixes
        if self._is_rest:
            return prefixes.end, prefixes.n_tokens
        if level == "character":
            positions = prefixes.positions(done)
        else:
            positions = self._boundaries.positions(level, done, prefixes.stop)
        for position in positions:
            if self._boundaries.splits_special(position, prefixes.stop):
                continue
            found = prefixes.count(position)
            if found <= self._budget:
                return position, found
        return None
