"""Where a part begins: the first offset at or after a byte where the text may be cut.

Whether it may be cut at an offset depends on a few bytes around it. So a part finds both of its
ends by itself, and finds the same as its neighbours do. If there is no such place until the end of
the text, the part before takes all of it, and the parts after are empty.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from ..pipeline.sinks import TABLE
from ..pipeline.sources.parquet_texts import ParquetTexts
from ..pipeline.sources.unit_ends import CleanCuts, FindCut, cuts_behind
from ..stores import places

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..pipeline.job import EncodeJob
    from .ranges import Part


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
    return CleanCuts(job.open_stream(encoding)).find if job.end is None else cuts_behind(job.end)


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
