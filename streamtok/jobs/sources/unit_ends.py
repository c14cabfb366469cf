"""Where units of a text end: at the first cut at or after a multiple of UNIT bytes.

A cut is the end of a document, or a clean cut inside one (`_core/scan/cuts.pxi`). The ends of units
depend on the text alone, so every reader finds the same ends, in a stream (`Divider`) or in a file
from any offset (`FindCut`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ...chunker import StreamEncoder
    from .splitters import Part, Splitter

UNIT = 1 << 25  # bytes

Read: TypeAlias = Callable[[int, int], bytes]
"""Returns the bytes start:stop of a text; fewer only at its end."""

FindCut: TypeAlias = Callable[[Read, int], "int | None"]
"""Returns the first cut at or after an offset in a text, or None."""

_WINDOW = 1 << 16  # bytes to read at a time; the first window nearly always has a cut
_CHARACTER = 4  # bytes of the longest UTF-8 character


def next_multiple(at: int) -> int:
    """The first multiple of UNIT after `at`."""
    return (at // UNIT + 1) * UNIT


def cuts_after(end: bytes) -> FindCut:
    """Make a function that finds cuts after `end`, the bytes that end a document."""

    def find(read: Read, offset: int) -> int | None:
        at = max(offset - len(end), 0)
        while True:
            data = read(at, at + _WINDOW + len(end) - 1)
            found = data.find(end)
            if found >= 0:
                return at + found + len(end)
            if len(data) < _WINDOW:
                return None
            at += _WINDOW

    return find


class CleanCuts:
    """Finds clean cuts, which the encoding must support."""

    def __init__(self, stream: StreamEncoder):
        self._cuts: Any = stream.encoding.definition.texts.cuts
        self._matcher: Any = stream.matcher
        # A cut depends on this many bytes on each side.
        self.around = max(self._matcher.reach, _CHARACTER)

    def in_data(self, data: bytes, start: int, stop: int) -> int:
        """The first clean cut in start:stop; -1 if there is none."""
        return int(self._cuts.find(data, self._matcher, start, stop))

    def find(self, read: Read, offset: int) -> int | None:
        """As `FindCut`."""
        at, around = offset, self.around
        while True:
            first = max(at - around, 0)
            data = read(first, at + _WINDOW + around)
            stop = min(at + _WINDOW, first + len(data))
            found = self.in_data(data, at - first, stop - first)
            if found >= 0:
                return first + found
            if stop < at + _WINDOW:
                return None
            at = stop


class Divider:
    """Splits the blocks of one text into parts, so that units end at ends of parts."""

    def __init__(self, splitter: Splitter, clean: CleanCuts | None):
        """splitter: must be at the beginning of a unit. clean: None unless documents may be cut."""
        self._splitter = splitter
        self._clean = clean
        self._at = splitter.consumed  # offset in the text
        self._target = next_multiple(self._at)
        # With clean cuts: bytes not passed on yet, and the last bytes before them.
        self._held = self._before = b""

    def split(self, block: bytes) -> Iterator[tuple[list[Part], bool]]:
        """Yield the parts that the block completes, and whether a unit ends after them."""
        if self._clean is None:
            return self._split_documents(block)
        return self._split_inside(block, self._clean)

    def _split_documents(self, block: bytes) -> Iterator[tuple[list[Part], bool]]:
        splitter = self._splitter
        while block:
            left = self._target - self._at
            if len(block) < left:
                yield self._feed(block), False
                return
            if left > 0:
                taken, is_end = left, False
            else:
                found = splitter.find_end(block)
                taken, is_end = (len(block), False) if found is None else (found, True)
            parts = self._feed(block[:taken])
            block = block[taken:]
            if is_end or splitter.is_between:
                self._target = next_multiple(self._at)
                is_end = True
            yield parts, is_end

    def _split_inside(self, block: bytes, clean: CleanCuts) -> Iterator[tuple[list[Part], bool]]:
        around = clean.around  # bytes to hold back, because the next block affects cuts in them
        if not self._held and self._at + len(block) <= self._target - around:
            self._before = (self._before + block if len(block) < around else block)[-around:]
            yield self._feed(block), False
            return
        self._held += block
        yield from self._split_held(clean, around)

    def rest(self) -> Iterator[tuple[list[Part], bool]]:
        """At the end of the text, yield the parts in the bytes held back."""
        return iter(()) if self._clean is None else self._split_held(self._clean, 0)

    def _split_held(self, clean: CleanCuts, kept: int) -> Iterator[tuple[list[Part], bool]]:
        """Yield the parts in the bytes held back, without the last `kept` of them."""
        while (cut := self._find(clean, len(self._held) - kept)) >= 0:
            yield self._feed_held(cut, clean.around), True
            self._target = next_multiple(self._at)
        if len(self._held) > kept:
            yield self._feed_held(len(self._held) - kept, clean.around), False

    def _find(self, clean: CleanCuts, stop: int) -> int:
        """The first cut in the held bytes, at or after the target and before `stop`; or -1."""
        start = max(self._target - self._at, 0)
        if start >= stop:
            return -1
        size = len(self._before)
        found = clean.in_data(self._before + self._held, size + start, size + stop)
        return found - size if found >= 0 else -1

    def _feed_held(self, size: int, around: int) -> list[Part]:
        data, self._held = self._held[:size], self._held[size:]
        self._before = (self._before + data)[-around:]
        return self._feed(data)

    def _feed(self, data: bytes) -> list[Part]:
        self._at += len(data)
        return self._splitter.split(data)
