"""Where units of a text end: at the first cut at or after a multiple of UNIT bytes.

A cut is the end of a document, or a clean cut inside one (`_core/scan/cuts.pxi`). Where units end
follows from the text alone. So every reader finds the same ones: in a stream, as here, or in a
file, beginning anywhere (`find_cut`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ...chunker import StreamEncoder
    from .splitters import Part, Splitter

UNIT = 1 << 25  # bytes

Read: TypeAlias = Callable[[int, int], bytes]
"""The bytes start:stop of a text; fewer only where it ends."""

FindCut: TypeAlias = Callable[[Read, int], "int | None"]
"""The first cut at or after an offset of a text, or None if there is none."""

_WINDOW = 1 << 16  # bytes that are read at a time; the first window nearly always has a cut
_CHARACTER = 4  # bytes of the longest


def next_multiple(at: int) -> int:
    """The first multiple of UNIT after `at`."""
    return (at // UNIT + 1) * UNIT


def cuts_after(end: bytes) -> FindCut:
    """Cuts after the bytes that end a document."""

    def find(read: Read, place: int) -> int | None:
        at = max(place - len(end), 0)
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
    """The clean cuts of an encoding, which must have some."""

    def __init__(self, stream: StreamEncoder):
        self._cuts: Any = stream.encoding.definition.texts.cuts
        self._matcher: Any = stream.matcher
        self.around = max(self._matcher.reach, _CHARACTER)  # bytes that decide about an offset

    def in_data(self, data: bytes, start: int, stop: int) -> int:
        """The first one in start:stop; -1 if there is none."""
        return int(self._cuts.find(data, self._matcher, start, stop))

    def find(self, read: Read, place: int) -> int | None:
        """A FindCut."""
        at, around = place, self.around
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
    """Splits the blocks of one text, so that units end where parts do."""

    def __init__(self, splitter: Splitter, clean: CleanCuts | None):
        """splitter: at the beginning of a unit. clean: cuts inside documents, if it finds none."""
        self._splitter = splitter
        self._clean = clean
        self._at = splitter.consumed  # bytes of the text that the splitter has had
        self._target = next_multiple(self._at)
        # Of a text with clean cuts: what the splitter has not had yet, and what it had last.
        self._held = self._before = b""

    def split(self, block: bytes) -> Iterator[tuple[list[Part], bool]]:
        """The parts that the block completes, and whether a unit ends after them."""
        if self._clean is None:
            return self._split_documents(block)
        return self._split_inside(block, self._clean, self._clean.around)

    def _split_documents(self, block: bytes) -> Iterator[tuple[list[Part], bool]]:
        splitter = self._splitter
        while block:
            room = self._target - self._at
            if len(block) < room:
                yield self._give(block), False
                return
            if room > 0:
                taken, is_end = room, False
            else:
                found = splitter.find_end(block)
                taken, is_end = (len(block), False) if found is None else (found, True)
            parts = self._give(block[:taken])
            block = block[taken:]
            if is_end or splitter.is_between:
                self._target = next_multiple(self._at)
                is_end = True
            yield parts, is_end

    def _split_inside(
        self, block: bytes, clean: CleanCuts, around: int
    ) -> Iterator[tuple[list[Part], bool]]:
        """`around`: bytes that are held at the end, because what follows decides about cuts."""
        if not self._held and self._at + len(block) <= self._target - around:
            self._before = (self._before + block if len(block) < around else block)[-around:]
            yield self._give(block), False
            return
        self._held += block
        while (cut := self._find(clean, len(self._held) - around)) >= 0:
            yield self._give_held(cut, around), True
            self._target = next_multiple(self._at)
        if len(self._held) > around:
            yield self._give_held(len(self._held) - around, around), False

    def rest(self) -> Iterator[tuple[list[Part], bool]]:
        """The rest of the text, which has ended."""
        if self._clean is None or not self._held:
            return
        around = self._clean.around
        while (cut := self._find(self._clean, len(self._held))) >= 0:
            yield self._give_held(cut, around), True
            self._target = next_multiple(self._at)
        yield self._give_held(len(self._held), around), False

    def _find(self, clean: CleanCuts, stop: int) -> int:
        """The first cut at or after the target, before byte `stop` of the bytes held; or -1."""
        start = max(self._target - self._at, 0)
        if start >= stop:
            return -1
        size = len(self._before)
        found = clean.in_data(self._before + self._held, size + start, size + stop)
        return found - size if found >= 0 else -1

    def _give_held(self, size: int, around: int) -> list[Part]:
        data, self._held = self._held[:size], self._held[size:]
        self._before = (self._before + data)[-around:]
        return self._give(data)

    def _give(self, data: bytes) -> list[Part]:
        self._at += len(data)
        return self._splitter.split(data)
