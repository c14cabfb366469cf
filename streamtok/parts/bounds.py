"""Where a part begins: the first offset at or after a byte where the text may be cut.

Whether it may be cut at an offset depends on a few bytes around it. So a part finds both of its
ends by itself, and finds the same as its neighbours do. If there is no such place until the end of
the text, the part before takes all of it, and the parts after are empty.

In a compressed file a part begins after the beginning of a frame. It is unknown how long the text
before that frame is without reading it. Only the distance from there to the first cut is needed.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..pipeline.sources import Stretch, text_behind
from ..pipeline.sources.parquet import ParquetTexts
from ..stores import places

if TYPE_CHECKING:
    from ..chunker import StreamEncoder
    from .ranges import Part

Read: TypeAlias = Callable[[int, int], bytes]
"""The bytes start:stop of a text; fewer only where it ends. `start` must not go back."""

_WINDOW = 1 << 16  # bytes that are read at a time; the first window nearly always has a cut
_CHARACTER = 4  # bytes of the longest


class Cuts(NamedTuple):
    """How a text may be cut.

    find: the first cut at or after an offset, or None if there is none. around: how many bytes on
    each side of an offset decide whether it is a cut.
    """

    find: Callable[[Read, int], int | None]
    around: int


def bytes_of_part(part: Part, cuts: Cuts) -> tuple[int, int]:
    """(begin, end) of a part in the bytes of its input; equal for an empty part. Raises OSError."""
    size = part.input.size
    with places.open_binary(part.input.path) as file:

        def read(start: int, stop: int) -> bytes:
            file.seek(start)
            return file.read(max(min(stop, size) - start, 0))

        def cut(place: int) -> int:
            if place <= 0 or place >= size:
                return min(max(place, 0), size)
            found = cuts.find(read, place)
            return size if found is None else found

        return cut(part.start), cut(part.stop)


def stretch_of_part(part: Part, cuts: Cuts) -> Stretch:
    """The text of a part of a compressed input. Raises OSError, ArchiveError."""

    def behind(start: int) -> int:
        """How far after the frame at byte `start` the first cut is, or the end of the text.

        What lies around the cut must not lie before the frame.
        """
        text = _Text(text_behind(part.input.path, start, None, _WINDOW))
        found = cuts.find(text.read, cuts.around)
        return text.end if found is None else found

    skipped = behind(part.start) if part.start else 0
    if part.is_last:
        return Stretch(part.start, skipped, None, 0)
    return Stretch(part.start, skipped, part.stop, behind(part.stop))


class _Text:
    """A text that comes in blocks, for a search that does not go back."""

    def __init__(self, blocks: Iterator[bytes]):
        self._blocks = blocks
        self._kept = b""
        self._at = 0  # of the kept bytes

    @property
    def end(self) -> int:
        """Where what was read ends."""
        return self._at + len(self._kept)

    def read(self, start: int, stop: int) -> bytes:
        """The bytes start:stop; fewer only where the text ends."""
        while self.end < stop and (block := next(self._blocks, b"")):
            drop = min(max(start - self._at, 0), len(self._kept))
            self._kept = self._kept[drop:] + block
            self._at += drop
        return self._kept[max(start - self._at, 0) : max(stop - self._at, 0)]


def cuts_behind(end: bytes) -> Cuts:
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

    return Cuts(find, len(end))


def clean_cuts(stream: StreamEncoder) -> Cuts:
    """The clean cuts of an encoding, which must have some."""
    cuts, matcher = stream.encoding._cuts, stream._matcher
    assert cuts is not None
    find_clean = cuts.find
    around = max(matcher.reach, _CHARACTER)

    def find(read: Read, place: int) -> int | None:
        at = place
        while True:
            first = max(at - around, 0)
            data = read(first, at + _WINDOW + around)
            stop = min(at + _WINDOW, first + len(data))
            found = find_clean(data, matcher, at - first, stop - first)
            if found >= 0:
                return int(first + found)
            if stop < at + _WINDOW:
                return None
            at = stop

    return Cuts(find, around)


def row_groups_of_part(part: Part, column: str) -> range:
    """The row groups of a Parquet file that begin in the part. Raises as ParquetInput."""
    texts = ParquetTexts(part.input.path, column)
    try:
        starts = texts.group_starts()
    finally:
        texts.close()
    first = bisect.bisect_left(starts, part.start)
    last = len(starts) if part.is_last else bisect.bisect_left(starts, part.stop)
    return range(first, last)
