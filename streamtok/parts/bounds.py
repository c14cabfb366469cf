"""Where a part begins: the first offset at or after a byte where the text may be cut.

Whether it may be cut at an offset depends on a few bytes around it. So a part finds both of its
ends by itself, and finds the same as its neighbours do. If there is no such place until the end of
the text, the part before takes all of it, and the parts after are empty.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ..pipeline.sinks import TABLE
from ..pipeline.sources.parquet_texts import ParquetTexts
from ..stores import places

if TYPE_CHECKING:
    from ..chunker import StreamEncoder
    from ..encoding import Encoding
    from ..pipeline.job import EncodeJob
    from .ranges import Part

Read: TypeAlias = Callable[[int, int], bytes]
"""The bytes start:stop of a text; fewer only where it ends."""

FindCut: TypeAlias = "Callable[[Read, int], int | None]"
"""The first cut at or after an offset of a text, or None if there is none."""

_WINDOW = 1 << 16  # bytes that are read at a time; the first window nearly always has a cut
_CHARACTER = 4  # bytes of the longest


def bytes_of_part(part: Part, find_cut: FindCut) -> tuple[int, int]:
    """(begin, end) of a part in the bytes of its input; equal for an empty part. Raises OSError."""
    size = part.input.size
    with places.open_binary(part.input.path) as file:

        def read(start: int, stop: int) -> bytes:
            file.seek(start)
            return file.read(max(min(stop, size) - start, 0))

        def cut(place: int) -> int:
            if place <= 0 or place >= size:
                return min(max(place, 0), size)
            found = find_cut(read, place)
            return size if found is None else found

        return cut(part.start), cut(part.stop)


def cuts_behind(end: bytes) -> FindCut:
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


def clean_cuts(stream: StreamEncoder) -> FindCut:
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

    return find


def can_cut(job: EncodeJob, encoding: Encoding) -> bool:
    """Whether the text of an input can be cut.

    Inside a document only if the output does not record documents, and where the encoding has
    clean cuts.
    """
    if job.is_split:
        return job.can_cut
    return encoding._cuts is not None and not TABLE[job.chosen].keeps_documents


def find_cuts(job: EncodeJob, encoding: Encoding) -> FindCut:
    """Where the text of an input may be cut, if `can_cut`."""
    return clean_cuts(job.open_stream(encoding)) if job.end is None else cuts_behind(job.end)


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
