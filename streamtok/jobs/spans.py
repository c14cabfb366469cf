"""Divides inputs into spans, which depend only on their sizes and on the bytes around cuts.

A span is one unit of a large plain file or of the rows of a Parquet file, a group of inputs that
share a unit, or a whole file that cannot be cut, such as a compressed file.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .._core.encode import set_cache_limit
from .sources import unit_ends
from .sources.blocks import Waiting, is_compressed
from .sources.inputs import FileInput, Input, ParquetInput
from .sources.parquet_texts import ParquetTexts
from .sources.unit_ends import CleanCuts, FindCut, cuts_after
from .span_encoder import Span, SpanEncoder, group_ends
from .stores import places

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .job import EncodeJob
    from .rows import Row
    from .sources.reading import Reading
    from .sources.records import BadRecord, OnBad

CACHE_BYTES = 16 << 20  # of each encoding thread's pre-token cache; less than the default


def find_cuts(job: EncodeJob, encoding: Encoding) -> FindCut | None:
    """Return the function that finds cuts in a plain file; None if it cannot be cut."""
    if job.end is not None:
        return cuts_after(job.end) if job.can_cut else None
    if encoding.definition.texts.cuts is None:
        return None
    return CleanCuts(job.open_stream(encoding)).find


@contextlib.contextmanager
def _open_cuts(path: str, size: int, find: FindCut) -> Iterator[Callable[[int], int]]:
    """Open a file of `size` bytes; yield a function that finds its cuts.

    The function returns the first cut at or after a byte, or `size` if there is none.
    """
    with places.open_binary(path) as file:

        def read(start: int, stop: int) -> bytes:
            file.seek(start)
            return file.read(max(min(stop, size) - start, 0))

        def cut(place: int) -> int:
            found = find(read, place) if 0 < place < size else place
            return size if found is None else found

        yield cut


def spans_after(
    row: Row,
    reading: Reading,
    paths: Sequence[str],
    sizes: Sequence[int | None],
    find: FindCut | None,
) -> Iterator[Span]:
    """Yield the spans of the text after a row, in order. Raises OSError."""
    ends = group_ends(sizes)
    first, position, stream = row.input, row.position, row.stream
    while first < len(paths):
        last = ends.index(True, first) + 1
        if last == first + 1 and sizes[first] is not None:
            at = position["at"] if position else 0
            for stop in _stops(paths[first], at, reading, find):
                yield Span(first, last, position, stop, stream)
                position, stream = inside(stop), None
        yield Span(first, last, position, stream=stream)
        first, position, stream = last, None, None


def inside(at: int) -> dict[str, int | None]:
    """The position at a byte or row, without the number of records before it."""
    return {"at": at, "records": None, "crc": 0}


def _stops(path: str, at: int, reading: Reading, find: FindCut | None) -> Iterator[int]:
    """Yield the bytes or rows where spans of an input stop, after `at` and before its end."""
    if reading.parquet is not None:
        with contextlib.closing(ParquetTexts(path, reading.parquet)) as texts:
            yield from (stop for stop in texts.unit_ends[:-1] if stop > at)
        return
    if find is None or is_compressed(path):
        return
    size = places.size_of(path)
    with _open_cuts(path, size, find) as cut:
        while (at := cut(unit_ends.next_multiple(at))) < size:
            yield at


def span_between(
    path: str, start: int, stop: int, reading: Reading, find: FindCut | None
) -> Span | None:
    """The span between the cuts for the bytes `start` and `stop` of an input; None if it is empty.

    A cut depends only on the bytes around it, so all processes find the same cuts. Text without
    cuts belongs to the span that begins before it. Raises OSError, and the errors of ParquetInput.
    """
    size = places.size_of(path)
    if start == 0 and stop >= size:
        return Span(0, 1)
    if reading.parquet is not None:
        with contextlib.closing(ParquetTexts(path, reading.parquet)) as texts:
            starts = texts.group_starts()
            groups = (
                len(starts) if at >= size else bisect.bisect_left(starts, at)
                for at in (start, stop)
            )
            first, last = (texts.first_rows[group] for group in groups)
    else:
        assert find is not None
        with _open_cuts(path, size, find) as cut:
            first, last = cut(start), cut(stop)
    if first == last and stop < size:
        return None
    return Span(0, 1, inside(first) if first else None, None if stop >= size else last)


def open_span(
    reading: Reading,
    path: str,
    span: Span,
    on_bad: OnBad,
    block_size: int,
    *,
    name: str | None = None,
    waiting: Waiting = contextlib.nullcontext,
) -> FileInput | ParquetInput:
    """Open the input that reads a span of a file.

    Raises the errors of ParquetInput or FileInput.
    """
    how: dict[str, Any] = {"on_bad": on_bad, "waiting": waiting, "stop": span.stop}
    if reading.parquet is not None:
        return ParquetInput(path, name or path, reading, **how)
    return FileInput(path, name or path, reading, block_size=block_size, **how)


def begin_encoder(
    job: EncodeJob, paths: Sequence[str], sizes: Sequence[int | None], num_threads: int = 1
) -> SpanEncoder:
    """Make the encoder for spans of files in a worker, and limit the size of the caches."""
    set_cache_limit(CACHE_BYTES)
    encoding = job.open_encoding()
    skipped: list[BadRecord] = []

    def open_input(number: int, span: Span) -> Input:
        return open_span(job, paths[number], span, skipped.append, job.chunk_size)

    family = job.family(encoding)
    return SpanEncoder(job, encoding, family, open_input, sizes, skipped, num_threads=num_threads)
