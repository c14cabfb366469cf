"""Where a part begins: the first offset at or after a byte where the text may be cut.

Whether it may be cut at an offset depends on a few bytes around it. So a part finds both of its
ends by itself, and finds the same as its neighbours do. If there is no such place until the end of
the text, the part before takes all of it, and the parts after are empty.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..pipeline.sinks import TABLE
from ..pipeline.sources.parquet_texts import ParquetTexts
from ..pipeline.sources.unit_ends import FindCut
from ..pipeline.span_encoder import Span
from ..pipeline.spans import reader
from ..stores import places

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..pipeline.job import EncodeJob
    from ..pipeline.sources import Reading
    from .ranges import Part


def bytes_of_part(part: Part, find_cut: FindCut) -> tuple[int, int]:
    """(begin, end) of a part in the bytes of its input; equal for an empty part. Raises OSError."""
    size = part.input.size
    with places.open_binary(part.input.path) as file:
        read = reader(file, size)

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
    return encoding.definition.texts.cuts is not None and not TABLE[job.chosen].keeps_documents


def span_of_part(
    part: Part, reading: Reading, find_cut: Callable[[], FindCut | None]
) -> Span | None:
    """The span that a part is, None if nothing is in it. Raises OSError; as ParquetInput.

    find_cut: gives what finds where the text may be cut; not called for an input that is one part.
    """
    is_whole = part.start == 0 and part.is_last
    if is_whole:
        return Span(0, 1)
    if reading.parquet is not None:
        begin, stop = _rows_of_part(part, reading.parquet)
    else:
        find = find_cut()
        assert find is not None
        begin, stop = bytes_of_part(part, find)
    if begin == stop and not part.is_last:
        return None
    position = {"at": begin, "records": None, "crc": 0} if begin else None
    return Span(0, 1, position, None if part.is_last else stop)


def _rows_of_part(part: Part, column: str) -> tuple[int, int]:
    """The rows of the row groups of a Parquet file that begin in the part."""
    with contextlib.closing(ParquetTexts(part.input.path, column)) as texts:
        starts = texts.group_starts()
        first = bisect.bisect_left(starts, part.start)
        last = len(starts) if part.is_last else bisect.bisect_left(starts, part.stop)
        return texts.first_rows[first], texts.first_rows[last]
