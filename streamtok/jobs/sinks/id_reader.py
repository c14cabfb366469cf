"""Reads ids back from blocks of bytes: raw ids, npy, text and JSONL.

`format_table.read_ids` chooses among these. All raise ValueError.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .flat import JSONL_BEGIN

if TYPE_CHECKING:
    import numpy.typing as npt

    Ids = npt.NDArray[Any]

_BLANKS = b" \t\r\n"
_DIGITS = b"0123456789"
_TO_BLANKS = bytes.maketrans(b",[]", b"   ")
_LONGEST_NUMBER = 20  # digits, including leading zeros
_LONGEST_HEADER = 10_000  # bytes, as in NumPy; a file of ids has 128
_INTEGER = re.compile(r"[<>=|]?[iu][1248]")
_ROW = re.compile(rb'\{\s*"input_ids"\s*:\s*\[')
_LONGEST_BEGIN = 1000  # bytes, including white space


def read_raw(blocks: Iterable[bytes | memoryview], width: int) -> Iterator[Ids]:
    """Little-endian ids of `width` bytes."""
    return _read_raw(blocks, np.dtype(f"<u{width}"))


def _read_raw(blocks: Iterable[bytes | memoryview], dtype: np.dtype[Any]) -> Iterator[Ids]:
    rest = b""
    for block in blocks:
        data = rest + block
        whole = len(data) - len(data) % dtype.itemsize
        if whole:
            yield np.frombuffer(data, dtype, whole // dtype.itemsize)
        rest = data[whole:]
    if rest:
        raise ValueError(
            f"the input ends inside an id: found {len(rest)} of its {dtype.itemsize} bytes"
        )


def read_text_or_rows(blocks: Iterator[bytes | memoryview]) -> Iterator[Ids]:
    """Decimal ids; what begins with { is read as `read_rows` does."""
    start = b""
    for block in blocks:
        start += block
        if start.strip(_BLANKS):
            break
    read = read_rows if start.lstrip(_BLANKS)[:1] == b"{" else _read_text
    yield from read(itertools.chain([start], blocks))


def _read_text(blocks: Iterable[bytes | memoryview]) -> Iterator[Ids]:
    rest = b""
    offset = 0  # of `data` in the input
    for block in blocks:
        data = rest + block
        _check_bytes(data, _DIGITS + _BLANKS + b",[]", offset)
        data = data.translate(_TO_BLANKS)
        # The last number may continue in the next block.
        words = data.split()
        rest = words.pop() if words and not data[-1:].isspace() else b""
        if words:
            yield _numbers(words)
        _check_length(rest)
        offset += len(data) - len(rest)
    if rest:
        yield _numbers([rest])


def read_rows(blocks: Iterable[bytes | memoryview]) -> Iterator[Ids]:
    """The ids of all lines of JsonlSink. Lines of any length are read in blocks, too."""
    data = b""
    offset = 0  # of `data` in the input
    expected = "{"  # what comes next: { begins a line, then ids, then } ends it
    is_first = True  # no comma seen in this line
    for block in blocks:
        data += block
        while data:
            if expected != "ids":
                offset += len(data)
                data = data.lstrip(_BLANKS)
                offset -= len(data)
            if expected == "{":
                row = _ROW.match(data)
                if row is None:
                    _check_begin(data, offset)
                    break
                taken, expected, is_first = row.end(), "ids", True
            elif expected == "ids":
                end = data.find(b"]")
                _check_bytes(data if end < 0 else data[:end], _DIGITS + _BLANKS + b",", offset)
                taken = data.rfind(b",") + 1 if end < 0 else end + 1
                if not taken:
                    _check_length(data.strip(_BLANKS))
                    break
                words = data[: taken - 1].split(b",")
                if not is_first or len(words) > 1 or words[0].strip(_BLANKS) or end < 0:
                    yield _numbers(words, offset)
                expected, is_first = ("ids", False) if end < 0 else ("}", True)
            else:
                _check_bytes(data[:1], b"}", offset, "}")
                taken = len(data[:1])
                expected = "{" if taken else "}"
            offset += taken
            data = data[taken:]
    if data or expected != "{":
        raise ValueError(f"the input ends inside a line, at byte {offset + len(data)}")


def _check_begin(data: bytes, offset: int) -> None:
    """Raise ValueError if no line can begin with `data`."""
    begun = data.translate(None, _BLANKS)
    if not JSONL_BEGIN.startswith(begun) or len(data) > _LONGEST_BEGIN:
        raise ValueError(f'byte {offset}: expected a line such as {{"input_ids": [1, 2, 3]}}')


def _check_bytes(data: bytes, allowed: bytes, offset: int, expected: str = "a decimal id") -> None:
    if strange := data.translate(None, allowed):
        where = offset + data.index(strange[:1])
        raise ValueError(
            f"byte {where}: expected {expected}, found {strange[:1]!r}; if the input is not "
            "text, give its --format"
        )


def _check_length(number: bytes) -> None:
    if len(number) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(number)} digits is too large for an id")


def _numbers(words: list[bytes], offset: int = 0) -> Ids:
    _check_length(max((word.strip(_BLANKS) for word in words), key=len))
    # Numbers beyond 64 bits are capped: the decoder reports the position of every id too large.
    try:
        return np.array([min(int(word), 2**63 - 1) for word in words], dtype=np.int64)
    except ValueError:
        raise ValueError(f"near byte {offset}: expected one comma between ids") from None


def read_npy(blocks: Iterator[bytes | memoryview]) -> Iterator[Ids]:
    """The integers of a one-dimensional array in NumPy's format."""
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
        raise ValueError("not an npy file: it does not begin with \\x93NUMPY")
    version = data[6], data[7]
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"unknown npy format {version[0]}.{version[1]}: expected 1.0 or 2.0")
    start = 10 if version == (1, 0) else 12
    need(start)
    size = int.from_bytes(data[8:start], "little")
    start += size
    if start > _LONGEST_HEADER:
        raise ValueError(f"the npy header has {start} bytes: expected at most {_LONGEST_HEADER}")
    need(start)
    dtype, count = _parse_header(data[start - size : start])
    found = 0
    for ids in _read_raw(itertools.chain([data[start:]], blocks), dtype):
        found += len(ids)
        if found > count:
            break
        yield ids
    if found != count:
        more = "more" if found > count else f"only {found}"
        raise ValueError(f"the npy header says {count} ids, but the file has {more}")


def _parse_header(data: bytes) -> tuple[np.dtype[Any], int]:
    """The type and the number of the ids.

    NumPy's own parser lets other exceptions through than ValueError.
    """
    try:
        row = ast.literal_eval(data.decode("latin-1").strip())
        if set(row) != {"descr", "fortran_order", "shape"}:
            raise ValueError
        descr, is_fortran, shape = row["descr"], row["fortran_order"], row["shape"]
        is_shape = type(shape) is tuple and all(type(one) is int and one >= 0 for one in shape)
        if not is_shape or type(is_fortran) is not bool:
            raise ValueError
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("the npy header is damaged") from None
    if not (isinstance(descr, str) and _INTEGER.fullmatch(descr) and len(shape) == 1):
        raise ValueError(
            f"the npy file holds {str(descr)[:40]} of shape {shape}: expected a one-dimensional "
            "array of integers"
        )
    return np.dtype(descr), shape[0]
