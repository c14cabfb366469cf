"""What workers get: spans, which follow from the sizes of the inputs and the bytes around cuts.

A span is a unit of a large plain file, or of rows of a Parquet file; inputs that share a unit; or a
whole file that cannot be cut, such as a compressed one, with all its units.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from ..stores import places
from .sources import FileInput, ParquetInput, is_compressed
from .sources.open_blocks import records_before
from .sources.parquet_texts import ParquetTexts
from .sources.unit_ends import CleanCuts, FindCut, cuts_behind, next_multiple
from .span_encoder import Span

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .job import EncodeJob
    from .rows import Row
    from .sources import OnBad, Reading, Splitter, Start


def find_cuts(job: EncodeJob, encoding: Encoding) -> FindCut | None:
    """Where the text of a plain file may be cut, or None if it cannot."""
    if job.end is not None:
        return cuts_behind(job.end) if job.can_cut else None
    return None if encoding.definition.texts.cuts is None else CleanCuts(job.open_stream(encoding)).find


def reader(file: BinaryIO, size: int) -> Callable[[int, int], bytes]:
    """Reads the bytes of a file: a `Read`."""

    def read(start: int, stop: int) -> bytes:
        file.seek(start)
        return file.read(max(min(stop, size) - start, 0))

    return read


class Spans:
    """The spans of a job, in order."""

    def __init__(self, job: EncodeJob, paths: Sequence[str], ends: Sequence[bool]):
        """ends: whether a unit ends where each input does; see `span_encoder.group_ends`."""
        self._job = job
        self._paths = paths
        self._ends = ends
        self._find = find_cuts(job, job.open_encoding())

    def after(self, row: Row) -> Iterator[Span]:
        """The spans of what comes after a row. Raises OSError."""
        first, position = row.input, row.position
        while first < len(self._paths):
            last = self._ends.index(True, first) + 1
            if last == first + 1:
                for stop in self._stops(self._paths[first], position["at"] if position else 0):
                    yield Span(first, last, position, stop)
                    # Who begins there does not know how many records were before.
                    position = {"at": stop, "records": None, "crc": 0}
            yield Span(first, last, position)
            first, position = last, None

    def _stops(self, path: str, at: int) -> Iterator[int]:
        """Where spans of one input stop, before its end, from byte or row `at` on."""
        if self._job.parquet is not None:
            texts = ParquetTexts(path, self._job.parquet)
            with contextlib.closing(texts):
                yield from (stop for stop in texts.unit_ends[:-1] if stop > at)
            return
        if self._find is None or (self._job.unpack and is_compressed(path)):
            return
        size = places.size_of(path)
        with places.open_binary(path) as file:
            read = reader(file, size)
            while (place := next_multiple(at)) < size:
                stop = self._find(read, place)
                if stop is None or stop >= size:
                    return
                yield stop
                at = stop


def open_span(
    reading: Reading, path: str, span: Span, on_bad: OnBad, block_size: int
) -> FileInput | ParquetInput:
    """The input that reads a span of a file. Raises OSError; as ParquetInput."""
    if reading.parquet is not None:
        return ParquetInput(path, path, reading, on_bad=on_bad, stop=span.stop)
    end = reading.end

    def before() -> int:
        if not span.is_relative or end is None:
            return 0
        assert span.position is not None
        return records_before(path, span.position["at"], end)

    def splitter(name: str, start: Start) -> Splitter:
        ends = span.stop is None
        return reading.splitter(name, start, on_bad=on_bad, ends=ends, before=before)

    is_whole = span.stop is None and not span.is_relative
    return FileInput(
        path,
        path,
        splitter,
        may_be_compressed=is_whole and reading.unpack and is_compressed(path),
        block_size=block_size,
        stop=span.stop,
    )
