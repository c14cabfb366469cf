"""Sinks that write one file: raw ids, numpy's npy, text and JSONL.

A sink takes ids as they come, and the positions at which documents end. Its state is a few
counters. From these and the size of the file, another process can continue the file.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .outputs import Output

if TYPE_CHECKING:
    import numpy.typing as npt

    IdArray = npt.NDArray[np.uint32]
    Ends = Sequence[int] | npt.NDArray[np.int64]

NPY_HEADER = 128  # bytes
JSONL_BEGIN = b'{"input_ids":['

_MANY = 256  # ids; below this, str is faster than numpy


@dataclass(frozen=True)
class About:
    """What a file records about its ids: the encoding's name, its digest and its highest id.

    vocabulary: what `-e` named, if it is not a name of ours: the file of the vocabulary. job: the
    digest of the inputs and options (`EncodeJob.job_digest`); None if the inputs cannot be compared
    with those of another run.
    """

    encoding: str
    digest: str
    max_id: int
    vocabulary: str | None = None
    job: str | None = None

    @property
    def width(self) -> int:
        """Bytes of the narrowest id that holds them all: 2 or 4."""
        return fitting_width(self.max_id)


class Sink:
    """Takes ids with `write` and completes the output with `finish`."""

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        """ends: the positions in `ids` at which documents end, in ascending order: i for a document
        that ends before ids[i], len(ids) for one that ends after the last id.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """Write what comes after the last id."""

    def getstate(self) -> dict[str, Any]:
        """What another process needs besides the files to continue, as JSON values."""
        return {}


class RawSink(Sink):
    """Ids as u16 or u32, little-endian."""

    def __init__(self, output: Output, width: int):
        self._output = output
        self._dtype = np.dtype(f"<u{width}")

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        if len(ids):
            self._output.write(ids.astype(self._dtype, copy=False).view(np.uint8).data)


class NpySink(RawSink):
    """Raw ids after the header of numpy, which is rewritten when their count is known."""

    def __init__(self, output: Output, width: int, state: dict[str, Any]):
        super().__init__(output, width)
        self._width = width
        self._count: int = state.get("tokens", 0)
        if not state:
            output.write(npy_header(width, 0))

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        super().write(ids)
        self._count += len(ids)

    def finish(self) -> None:
        self._output.patch(0, npy_header(self._width, self._count))

    def getstate(self) -> dict[str, Any]:
        return {"tokens": self._count}


class TextSink(Sink):
    """Decimal, one id a line. The bytes do not depend on how the input was cut into chunks."""

    def __init__(self, output: Output):
        self._output = output

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        if len(ids):
            self._output.write(format_text(ids))


class JsonlSink(Sink):
    """A line {"input_ids":[…]} for each document, written as its ids come."""

    _BEGIN, _END = JSONL_BEGIN, b"]}\n"

    def __init__(self, output: Output, state: dict[str, Any]):
        self._output = output
        # What precedes the next id. Nothing of a document is written before its first id.
        self._before: bytes = state["before"].encode() if state else self._BEGIN

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        text, places = format_rows(ids, ends)
        text = text.replace(b"\n", b",")
        parts: list[bytes] = []
        start = 0
        for place in places:
            if place > start:
                parts += (self._before, text[start : place - 1], self._END)
            else:
                parts += (b"" if self._before == b"," else self._BEGIN, self._END)
            self._before = self._BEGIN
            start = place
        if start < len(text):
            parts += (self._before, text[start:-1])
            self._before = b","
        if parts:
            self._output.write(b"".join(parts))

    def getstate(self) -> dict[str, Any]:
        return {"before": self._before.decode()}


def npy_header(width: int, count: int) -> bytes:
    """The header of numpy's format 1.0 for an array of `count` ids of `width` bytes each."""
    shape = f"{{'descr': '<u{width}', 'fortran_order': False, 'shape': ({count},)}}"
    room = NPY_HEADER - 10
    return (
        b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + shape.encode().ljust(room - 1) + b"\n"
    )


def format_text(ids: IdArray) -> bytes:
    """The ids in decimal, each followed by a line end."""
    return format_rows(ids, ())[0]


def format_rows(ids: IdArray, ends: Ends) -> tuple[bytes, list[int]]:
    """The text of `format_text`, and for each of `ends` the offset in it before ids[end]."""
    if len(ids) < _MANY:
        lines = [f"{one}\n" for one in ids.tolist()]
        sizes = [0, *itertools.accumulate(map(len, lines))] if len(ends) else []
        return "".join(lines).encode(), [sizes[end] for end in ends]
    # A table of digits, one row for each id, without the leading zeros. This is 6 times as fast as
    # str() of each id.
    width = len(str(ids.max()))
    digits = np.empty((len(ids), width + 1), np.uint8)
    digits[:, width] = ord("\n")
    rest = ids
    for place in reversed(range(width)):
        tens = rest // 10
        digits[:, place] = rest - tens * 10 + ord("0")
        rest = tens
    is_shown = np.ones(digits.shape, np.bool_)
    for place in range(width - 1):
        is_shown[:, place] = ids >= 10 ** (width - 1 - place)
    data = digits[is_shown].tobytes()
    if not len(ends):
        return data, []
    sizes_before = np.concatenate([[0], np.cumsum(np.count_nonzero(is_shown, axis=1))])
    places: list[int] = sizes_before[np.asarray(ends, np.intp)].tolist()
    return data, places


def fitting_width(max_id: int) -> int:
    """Bytes of the narrowest id that holds `max_id`: 2 or 4."""
    return 2 if max_id <= 0xFFFF else 4


def document_lengths(size: int, ends: Ends, open_size: int) -> tuple[npt.NDArray[np.int64], int]:
    """The lengths of the documents that end in a block of `size` ids, and the new open size.

    open_size: ids of the open document that earlier blocks had.
    """
    if not len(ends):
        return np.empty(0, np.int64), open_size + size
    lengths = np.array(ends, np.int64)
    lengths[1:] -= lengths[:-1].copy()
    lengths[0] += open_size
    return lengths, size - int(ends[-1])
