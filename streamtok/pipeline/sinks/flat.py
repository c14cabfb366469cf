"""Sinks of one file: raw ids, numpy's npy, text, JSONL and llm.c's shards.

A sink takes ids as they come and, with them, where documents end. Its state is a few counters: with
them and the size of its file, another process writes on as if nothing had happened.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...errors import FormatLimitError
from .outputs import Writable

if TYPE_CHECKING:
    import numpy.typing as npt

    IdArray = npt.NDArray[np.uint32]
    Ends = Sequence[int] | npt.NDArray[np.int64]

_LLMC = {2: (20240520, 1), 4: (20240801, 7)}  # magic and version of u16 and u32
_MANY = 256  # ids; for fewer, numpy is slower than str


@dataclass(frozen=True)
class About:
    """What a file says of its ids: the encoding's name and digest, and its highest id."""

    encoding: str
    digest: str
    max_id: int

    @property
    def width(self) -> int:
        """int: bytes of the narrowest id that holds them all, 2 or 4."""
        return fitting_width(self.max_id)


class Sink(Protocol):
    """Takes ids; `finish` completes what it wrote.

    write: `ends` are the places in `ids` at which documents end, in ascending order: i if one ends
    before ids[i], len(ids) if after the last.
    """

    def write(self, ids: IdArray, ends: Ends = ()) -> None: ...
    def finish(self) -> None: ...
    def getstate(self) -> dict[str, Any]: ...


class RawSink:
    """u16 or u32, little-endian."""

    def __init__(self, output: Writable, width: int):
        self._output = output
        self._dtype = np.dtype(f"<u{width}")

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        if len(ids):
            self._output.write(self._bytes(ids))

    def _bytes(self, ids: IdArray) -> memoryview:
        return ids.astype(self._dtype, copy=False).view(np.uint8).data

    def finish(self) -> None:
        pass

    def getstate(self) -> dict[str, Any]:
        return {}


class NpySink(RawSink):
    """numpy's format 1.0: a header of fixed size, whose count is written when it is known."""

    HEADER_SIZE = 128

    def __init__(self, output: Writable, width: int, state: dict[str, Any] | None = None):
        super().__init__(output, width)
        self._count: int = state["tokens"] if state else 0
        if not state:
            output.write(self._header())

    def _header(self) -> bytes:
        return npy_header(self._dtype.itemsize, self._count)

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        super().write(ids)
        self._count += len(ids)

    def finish(self) -> None:
        self._output.patch(0, self._header())

    def getstate(self) -> dict[str, Any]:
        return {"tokens": self._count}


class LlmcSink(RawSink):
    """The shards of karpathy/llm.c: 256 int32 (magic, version, count, zeros), then the ids.

    Its dev/data/data_common.py has the two kinds, u16 and u32, and its dataloader refuses others.
    """

    HEADER_SIZE = 1024
    MOST = 2**31 - 1  # its count is an int32

    def __init__(self, output: Writable, width: int, state: dict[str, Any] | None = None):
        super().__init__(output, width)
        self._count: int = state["tokens"] if state else 0
        if not state:
            output.write(self._header())

    def _header(self) -> bytes:
        return llmc_header(self._dtype.itemsize, self._count)

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        if self._count + len(ids) > self.MOST:
            raise FormatLimitError(f"a file of llm.c holds {self.MOST} ids: use --shard-tokens")
        super().write(ids)
        self._count += len(ids)

    def finish(self) -> None:
        self._output.patch(0, self._header())

    def getstate(self) -> dict[str, Any]:
        return {"tokens": self._count}


class TextSink:
    """Decimal, one id a line: the bytes do not depend on how the input was cut into chunks."""

    def __init__(self, output: Writable):
        self._output = output

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        if len(ids):
            self._output.write(format_text(ids))

    def finish(self) -> None:
        pass

    def getstate(self) -> dict[str, Any]:
        return {}


class JsonlSink:
    """A line {"input_ids":[…]} for each document, written as its ids come."""

    _BEGIN, _END = b'{"input_ids":[', b"]}\n"

    def __init__(self, output: Writable, state: dict[str, Any] | None = None):
        self._output = output
        # What the next id has in front of it: nothing is written of a document before its first.
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

    def finish(self) -> None:
        pass

    def getstate(self) -> dict[str, Any]:
        return {"before": self._before.decode()}


def npy_header(width: int, count: int) -> bytes:
    """bytes: the header of numpy's format 1.0 for a row of `count` ids of `width` bytes."""
    shape = f"{{'descr': '<u{width}', 'fortran_order': False, 'shape': ({count},)}}"
    room = NpySink.HEADER_SIZE - 10
    return (
        b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + shape.encode().ljust(room - 1) + b"\n"
    )


def llmc_header(width: int, count: int) -> bytes:
    """bytes: llm.c's header for `count` ids of `width` bytes."""
    header = np.zeros(LlmcSink.HEADER_SIZE // 4, "<i4")
    header[:2] = _LLMC[width]
    header[2] = count
    return header.tobytes()


def format_text(ids: IdArray) -> bytes:
    """bytes: the ids in decimal, a line end after each."""
    return format_rows(ids, ())[0]


def format_rows(ids: IdArray, ends: Ends) -> tuple[bytes, list[int]]:
    """(bytes, list[int]): as `format_text`, and the places in it before ids[end] of each end."""
    if len(ids) < _MANY:
        lines = [f"{one}\n" for one in ids.tolist()]
        sizes = [0, *itertools.accumulate(map(len, lines))] if len(ends) else []
        return "".join(lines).encode(), [sizes[end] for end in ends]
    # A table of digits, one row for an id, in which leading zeros are then left out: 6 times as
    # fast as str() of each.
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
    """int: bytes of the narrowest id format that holds `max_id`, 2 or 4."""
    return 2 if max_id <= 0xFFFF else 4
