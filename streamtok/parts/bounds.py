"""Where a part begins: the first place at or after a byte where the input may be cut.

Whether it may be cut at a place depends on a few bytes around it only. So a part finds both of its
ends by itself, and finds the same as its neighbours do. If there is no such place until the end of
the file, the part before takes all of it, and the parts behind are empty.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ..pipeline.sources.parquet import ParquetTexts
from ..stores import places

if TYPE_CHECKING:
    from ..chunker import StreamEncoder
    from ..encoding import Encoding
    from .plan import Part
    from .settings import Settings

__all__ = ["bytes_between", "bytes_of_part", "clean_cuts", "row_groups_of_part"]

Read: TypeAlias = Callable[[int, int], bytes]
"""The bytes start:stop of a file."""
Find: TypeAlias = Callable[[Read, int, int], int]
"""The first cut at or after a place, or the size, from (read, place, size)."""

_WINDOW = 1 << 16  # bytes that are read at a time; the first window nearly always has a cut
_CHARACTER = 4  # bytes of the longest


def bytes_of_part(part: Part, settings: Settings, encoding: Encoding) -> tuple[int, int]:
    """(begin, end) of a part in the bytes of its input; equal for an empty part. Raises OSError."""
    if settings.end is not None:
        return bytes_between(part, functools.partial(_after_end, end=settings.end))
    return bytes_between(part, clean_cuts(settings.open_stream(encoding)))


def bytes_between(part: Part, find: Find) -> tuple[int, int]:
    """As `bytes_of_part`, for another way to find cuts."""
    size = part.input.size
    if part.start == 0 and part.is_last:
        return 0, size
    with places.open_binary(part.input.path) as file:

        def read(start: int, stop: int) -> bytes:
            file.seek(start)
            return file.read(max(min(stop, size) - start, 0))

        def cut(place: int) -> int:
            if place <= 0 or place >= size:
                return min(max(place, 0), size)
            return find(read, place, size)

        return cut(part.start), cut(part.stop)


def _after_end(read: Read, place: int, size: int, end: bytes) -> int:
    """The first place >= `place` behind the bytes that end a document, or the size."""
    at = max(place - len(end), 0)
    while at < size:
        data = read(at, at + _WINDOW + len(end) - 1)
        found = data.find(end)
        if found >= 0:
            return int(at + found + len(end))
        at += _WINDOW
    return size


def clean_cuts(stream: StreamEncoder) -> Find:
    """Finds the first clean cut >= a place, or the size. The encoding must have clean cuts."""
    cuts, matcher = stream.encoding._cuts, stream._matcher
    assert cuts is not None
    around = max(matcher.reach, _CHARACTER)  # what a cut depends on, on each side

    def find(read: Read, place: int, size: int) -> int:
        at = place
        while at < size:
            first = max(at - around, 0)
            stop = min(at + _WINDOW, size)
            data = read(first, stop + around)
            found = cuts.find(data, matcher, at - first, stop - first)
            if found >= 0:
                return int(first + found)
            at = stop
        return size

    return find


def row_groups_of_part(part: Part, column: str) -> range:
    """The row groups of a Parquet file that begin in the part. Raises as ParquetTexts."""
    texts = ParquetTexts(part.input.path, column)
    try:
        starts = texts.group_starts()
    finally:
        texts.close()
    first = bisect.bisect_left(starts, part.start)
    last = len(starts) if part.is_last else bisect.bisect_left(starts, part.stop)
    return range(first, last)
