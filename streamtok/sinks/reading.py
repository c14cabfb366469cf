"""Ids read back from the formats that are one row of ids, as the bytes come."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .flat import LlmcSink, llmc_header

if TYPE_CHECKING:
    import numpy.typing as npt

    Ids = npt.NDArray[Any]

_NOT_IDS = b"0123456789 \t\r\n,[]"
_TO_BLANKS = bytes.maketrans(b",[]", b"   ")
_LONGEST_NUMBER = 20  # digits; leading zeros included


def read_ids(blocks: Iterable[bytes | memoryview], chosen: str) -> Iterator[Ids]:
    """Iterator of integer arrays: the ids in the blocks, whose borders may be anywhere.

    chosen: one of READ_FORMATS. text: decimal, with blanks, line ends, commas or brackets between.
    Raises ValueError for what is not of the format or ends too early.
    """
    if chosen == "text":
        return _read_text(blocks)
    if chosen == "npy":
        return _read_npy(iter(blocks))
    if chosen == "llmc":
        return _read_llmc(iter(blocks))
    return _read_raw(blocks, np.dtype("<u2" if chosen == "u16" else "<u4"))


def _read_raw(blocks: Iterable[bytes | memoryview], dtype: np.dtype[Any]) -> Iterator[Ids]:
    rest = b""
    for block in blocks:
        data = rest + block
        whole = len(data) - len(data) % dtype.itemsize
        if whole:
            yield np.frombuffer(data, dtype, whole // dtype.itemsize)
        rest = data[whole:]
    if rest:
        raise ValueError(f"the input ends inside an id: {len(rest)} of its {dtype.itemsize} bytes")


def _read_text(blocks: Iterable[bytes | memoryview]) -> Iterator[Ids]:
    rest = b""
    offset = 0  # of `data` in the input
    for block in blocks:
        data = rest + block
        if strange := data.translate(None, _NOT_IDS):
            where = offset + data.index(strange[:1])
            raise ValueError(f"byte {where}: {strange[:1]!r} is no part of an id in text")
        data = data.translate(_TO_BLANKS)
        # The last number may go on in the next block.
        words = data.split()
        rest = words.pop() if words and not data[-1:].isspace() else b""
        if longest := max(map(len, words), default=0):
            if longest > _LONGEST_NUMBER:
                raise ValueError(f"a number of {longest} digits is no id")
            yield _numbers(words)
        if len(rest) > _LONGEST_NUMBER:
            raise ValueError(f"a number of {len(rest)} digits is no id")
        offset += len(data) - len(rest)
    if rest:
        yield _numbers([rest])


def _numbers(words: list[bytes]) -> Ids:
    # Too large for an id, let alone for 64 bits: the decoder says so, with the position.
    return np.array([min(int(word), 2**63 - 1) for word in words], dtype=np.int64)


def _read_npy(blocks: Iterator[bytes | memoryview]) -> Iterator[Ids]:
    data = b""

    def need(size: int) -> None:
        nonlocal data
        while len(data) < size:
            block = next(blocks, b"")
            if not block:
                raise ValueError("the input ends inside the npy header")
            data += block

    need(10)
    if data[:6] != b"\x93NUMPY":
        raise ValueError("the input is no npy file: it does not begin with \\x93NUMPY")
    version = data[6], data[7]
    read_header: Any  # NumPy has types for these since 2.4
    if version == (1, 0):
        start, read_header = 10, np.lib.format.read_array_header_1_0
    elif version == (2, 0):
        start, read_header = 12, np.lib.format.read_array_header_2_0
    else:
        raise ValueError(f"npy format {version[0]}.{version[1]} is unknown")
    need(start)
    start += int.from_bytes(data[8:start], "little")
    if start > 1 << 16:
        raise ValueError(f"the npy header has {start} bytes: that is none of a row of ids")
    need(start)
    shape, _, dtype = read_header(io.BytesIO(data[8:start]))
    if dtype.kind not in "iu" or len(shape) != 1:
        raise ValueError(f"the npy file has {dtype} of shape {shape}: ids are one row of integers")
    found = 0
    for ids in _read_raw(_chain(data[start:], blocks), dtype):
        found += len(ids)
        if found > shape[0]:
            break
        yield ids
    if found != shape[0]:
        more = "more" if found > shape[0] else f"only {found}"
        raise ValueError(f"the npy header says {shape[0]} ids, and there are {more}")


def has_llmc_header(head: bytes) -> bool:
    """bool: whether a file that begins like this has the ids of llm.c."""
    return _llmc_header(head) is not None


def _llmc_header(head: bytes) -> tuple[int, int] | None:
    """(bytes of an id, count) | None: what the header of llm.c says."""
    count = int.from_bytes(head[8:12], "little")
    if len(head) < LlmcSink.HEADER_SIZE or count > LlmcSink.MOST:
        return None
    for width in (2, 4):
        if head[: LlmcSink.HEADER_SIZE] == llmc_header(width, count):
            return width, count
    return None


def _read_llmc(blocks: Iterator[bytes | memoryview]) -> Iterator[Ids]:
    data = b""
    while len(data) < LlmcSink.HEADER_SIZE and (block := next(blocks, b"")):
        data += block
    if (found := _llmc_header(data)) is None:
        raise ValueError("the input does not begin with the header of llm.c")
    width, count = found
    size = 0
    for ids in _read_raw(_chain(data[LlmcSink.HEADER_SIZE :], blocks), np.dtype(f"<u{width}")):
        size += len(ids)
        if size > count:
            break
        yield ids
    if size != count:
        more = "more" if size > count else f"only {size}"
        raise ValueError(f"the header of llm.c says {count} ids, and there are {more}")


def _chain(first: bytes, rest: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    yield first
    yield from rest
