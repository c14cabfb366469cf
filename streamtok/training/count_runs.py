"""Counts of pre-tokens on the disk: runs, and their sum, in the memory of a small part of them.

A run holds the counts of a stretch of the text, and never changes. Its rows are sorted by *bucket*,
a hash of the pre-token, so a pre-token is in the same bucket of every run. Runs are summed up
bucket by bucket: the rows of one, from all runs, go through a table of the core.

The file of a run has no name (`tempfile.TemporaryFile`), so it is gone when the process ends,
whatever ends it. Each bucket has a checksum.
"""

from __future__ import annotations

import contextlib
import tempfile
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Protocol, TypeAlias

import numpy as np

from .._core.train import PretokenTable
from ..errors import StateError

__all__ = [
    "Arrays",
    "CountRun",
    "CountSource",
    "Shifted",
    "SortedCounts",
    "gather",
    "in_memory",
    "merge_last",
    "on_disk",
    "sum_counts",
]

Arrays: TypeAlias = tuple[Any, Any, Any, Any]
"""(data, sizes, counts, firsts), as `Counting.pretokens` gives them."""

BUCKETS = 1024
_HASHED = 64  # bytes of a pre-token that its hash sees, besides its size
_GATHERED = 1 << 16  # pre-tokens that are put in order at a time
_LONG = 256  # bytes from which a pre-token is worth a slice of its own
_FAN = 8  # runs of one level that are summed up to one of the next
_ROW = 200  # bytes of memory that a row takes while it is summed up, about, besides its own bytes
_DTYPES = (np.uint8, np.uint32, np.uint64, np.uint64)  # data, sizes, counts, firsts
_NUMBERS = 20  # bytes of a row in a file besides those of its pre-token
_FACTORS = np.random.default_rng(0x5EED).integers(0, 1 << 63, _HASHED, np.uint64) * 2 + 1


class CountSource(Protocol):
    """Rows of counts that can be had bucket by bucket."""

    rows: Any  # int64 [BUCKETS]: how many there are
    sizes: Any  # int64 [BUCKETS]: bytes of their pre-tokens

    def bucket(self, number: int) -> Arrays:
        """The rows of one bucket."""
        ...


class SortedCounts:
    """Counts in memory, sorted by bucket."""

    def __init__(self, arrays: Arrays):
        self._arrays = arrays
        data, sizes, _, _ = arrays
        buckets = _bucket_of(data, sizes)
        self._begins = np.cumsum(sizes, dtype=np.int64) - sizes
        self._order = np.argsort(buckets, kind="stable")
        self.rows = np.bincount(buckets, minlength=BUCKETS)
        self.sizes = np.bincount(buckets, sizes, BUCKETS).astype(np.int64)
        self._stops = np.cumsum(self.rows)

    def bucket(self, number: int) -> Arrays:
        """The rows of one bucket."""
        stop = self._stops[number]
        chosen = self._order[stop - self.rows[number] : stop]
        data, sizes, counts, firsts = self._arrays
        lengths = sizes[chosen]
        return gather(data, self._begins[chosen], lengths), lengths, counts[chosen], firsts[chosen]


class Shifted:
    """The rows of another source, as if they had been seen later in the text."""

    def __init__(self, source: CountSource, shift: int):
        self._source, self._shift = source, np.uint64(shift)
        self.rows, self.sizes = source.rows, source.sizes

    def bucket(self, number: int) -> Arrays:
        """The rows of one bucket."""
        data, sizes, counts, firsts = self._source.bucket(number)
        return data, sizes, counts, firsts + self._shift


class CountRun:
    """Counts in a file without a name."""

    def __init__(self, folder: str, blocks: Iterable[Arrays], level: int = 0):
        """Write the blocks, of which each has all rows of its buckets, in order of the buckets.

        folder: where the file is. level: how often its rows were summed up already. Raises OSError;
        nothing is left then.
        """
        self.level = level
        self.rows = np.zeros(BUCKETS, np.int64)
        self.sizes = np.zeros(BUCKETS, np.int64)
        self._checks = [0] * BUCKETS
        self._places = [0] * BUCKETS
        self._file = _open_nameless(folder)
        self.close = weakref.finalize(self, self._file.close)
        self.nbytes = 0
        try:
            for block in blocks:
                self._append(SortedCounts(block))
        except BaseException:
            self.close()
            raise

    def _append(self, block: SortedCounts) -> None:
        for number in np.flatnonzero(block.rows).tolist():
            arrays = reversed(block.bucket(number))  # the widest numbers first: all are aligned
            content = b"".join(array.tobytes() for array in arrays)
            _write_all(self._file, content)
            self.rows[number] = block.rows[number]
            self.sizes[number] = block.sizes[number]
            self._checks[number] = zlib.crc32(content)
            self._places[number] = self.nbytes
            self.nbytes += len(content)

    def bucket(self, number: int) -> Arrays:
        """The rows of one bucket. Raises OSError, and StateError if they are damaged."""
        rows, size = int(self.rows[number]), int(self.sizes[number])
        self._file.seek(self._places[number])
        content = bytearray(rows * _NUMBERS + size)
        view = memoryview(content)
        while view and (n := self._file.readinto(view)):  # type: ignore[attr-defined]
            view = view[n:]
        if view or zlib.crc32(content) != self._checks[number]:
            raise StateError(
                "counts that were spilled to the disk are damaged: they differ from the "
                "counts that were written. Count again, with another spill_folder"
            )
        firsts = np.frombuffer(content, np.uint64, rows)
        counts = np.frombuffer(content, np.uint64, rows, rows * 8)
        sizes = np.frombuffer(content, np.uint32, rows, rows * 16)
        return np.frombuffer(content, np.uint8, size, rows * _NUMBERS), sizes, counts, firsts


def sum_counts(sources: Sequence[CountSource], memory: int) -> Iterator[Arrays]:
    """The sums of all sources, some buckets at a time, in order of the buckets.

    A pre-token comes once. memory: bytes that may be taken, about; one bucket always fits.
    """
    costs = sum(source.rows * _ROW + source.sizes * 4 for source in sources)
    number = 0
    while number < BUCKETS:
        table = PretokenTable()
        spent = 0
        while number < BUCKETS and (spent == 0 or spent + costs[number] <= memory):
            spent += int(costs[number])
            for source in sources:
                if source.rows[number]:
                    table.load(*source.bucket(number))
            number += 1
        if len(table):
            yield table.export()


def merge_last(folder: str, runs: tuple[CountRun, ...], memory: int) -> tuple[CountRun, ...] | None:
    """The same counts in fewer runs, which take less room; None: they are few. Raises OSError."""
    last = runs[-_FAN:]
    if len(last) < _FAN or last[0].level != last[-1].level:
        return None
    return *runs[:-_FAN], CountRun(folder, sum_counts(last, memory), last[0].level + 1)


def in_order(arrays: Arrays) -> Arrays:
    """The rows by the offset of the first occurrence."""
    data, sizes, counts, firsts = arrays
    order = np.argsort(firsts, kind="stable")
    begins = (np.cumsum(sizes, dtype=np.int64) - sizes)[order]
    sizes = sizes[order]
    return gather(data, begins, sizes), sizes, counts[order], firsts[order]


def in_memory(blocks: Iterable[Arrays]) -> Arrays:
    """All blocks together."""
    columns = zip(PretokenTable().export(), *blocks, strict=True)
    data, sizes, counts, firsts = map(np.concatenate, columns)
    return data, sizes, counts, firsts


def on_disk(folder: str, blocks: Iterable[Arrays]) -> Arrays:
    """All blocks together, as arrays in files without names. Raises OSError."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(_open_nameless(folder)) for _ in range(4)]
        for arrays in blocks:
            for file, array in zip(files, arrays, strict=True):
                _write_all(file, array.tobytes())
        data, sizes, counts, firsts = (
            np.memmap(file, dtype, "r") if file.tell() else np.empty(0, dtype)
            for file, dtype in zip(files, _DTYPES, strict=True)
        )
        return data, sizes, counts, firsts


def gather(data: Any, begins: Any, sizes: Any) -> Any:
    """The bytes of pre-tokens end to end: uint8. They begin at `begins` in `data`."""
    parts = [data[:0]]
    for i in range(0, len(begins), _GATHERED):
        starts, lengths = begins[i : i + _GATHERED], sizes[i : i + _GATHERED]
        if lengths.sum(dtype=np.int64) > len(lengths) * _LONG:
            ends = (starts + lengths).tolist()
            parts += [data[a:b] for a, b in zip(starts.tolist(), ends, strict=True)]
            continue
        # The source of each byte: the start of its pre-token, and its place in that.
        shifts = starts - (np.cumsum(lengths, dtype=np.int64) - lengths)
        moved = np.repeat(shifts, lengths)
        parts.append(data[moved + np.arange(len(moved))])
    return np.concatenate(parts)


def _open_nameless(folder: str) -> BinaryIO:
    """A file that no other user sees, and that is gone when it is closed. Raises OSError."""
    return tempfile.TemporaryFile(dir=folder, buffering=0)


def _write_all(file: BinaryIO, content: bytes) -> None:
    """Write to a file without a buffer, which may take less at a time. Raises OSError."""
    view = memoryview(content)
    while view:
        view = view[file.write(view) :]


def _bucket_of(data: Any, sizes: Any) -> Any:
    """uint16 [n]: the bucket of each pre-token."""
    found = [np.empty(0, np.uint16)]
    begins = np.cumsum(sizes, dtype=np.int64) - sizes
    for i in range(0, len(sizes), _GATHERED):
        lengths = np.minimum(sizes[i : i + _GATHERED], _HASHED)
        heads = gather(data, begins[i : i + _GATHERED], lengths)
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        places = np.arange(len(heads)) - np.repeat(starts, lengths)
        hashes = np.add.reduceat((heads + np.uint64(1)) * _FACTORS[places], starts)
        hashes += sizes[i : i + _GATHERED] * _FACTORS[0]
        hashes ^= hashes >> np.uint64(32)
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        found.append((hashes >> np.uint64(54)).astype(np.uint16))
    return np.concatenate(found)
