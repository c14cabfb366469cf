"""Reads ids back from blocks of bytes: raw ids, npy, text and JSONL.

`format_table.read_ids` chooses the reader. All readers raise ValueError if the input is damaged or
has a different format.
"""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ids = npt.NDArray[Any]

_WHITE_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_TO_SPACES = bytes.maketrans(b",[]", b"   ")
_LONGEST_NUMBER = 20  # digits, including leading zeros
_LONGEST_HEADER = 10_000  # bytes, as in NumPy; our headers have 128
_LONGEST_ROW = 1 << 28  # bytes of a JSON line, which is parsed in memory


def read_raw(blocks: Iterable[bytes | memoryview], dtype: np.dtype[Any]) -> Iterator[Ids]:
    """Yield raw ids of this type."""
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
    """Yield decimal ids; input that begins with { is read by `read_rows`."""
    start = b""
    for block in blocks:
        start += block
        if start.strip(_WHITE_SPACE):
            break
    read = read_rows if start.lstrip(_WHITE_SPACE)[:1] == b"{" else _read_text
    yield from read(itertools.chain([start], blocks))


def _read_text(blocks: Iterable[bytes | memoryview]) -> Iterator[Ids]:
    rest = b""
    offset = 0  # of `data` in the input
    for block in blocks:
        data = rest + block
        if strange := data.translate(None, _DIGITS + _WHITE_SPACE + b",[]"):
            raise ValueError(
                f"byte {offset + data.index(strange[:1])}: expected a decimal id, found "
                f"{strange[:1]!r}; if the input is not text, give its --format"
            )
        data = data.translate(_TO_SPACES)
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
    """Yield the ids of each line that a JsonlSink wrote."""
    import msgspec  # slow to import, and only decoding needs it

    number_type = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    row_type = msgspec.defstruct("Row", [("input_ids", list[number_type])])
    parser: Any = msgspec.json.Decoder(row_type)
    for number, line in enumerate(_lines(blocks), 1):
        if not line or line.isspace():
            continue
        try:
            yield np.array(parser.decode(line).input_ids, np.int64)
        except msgspec.MsgspecError as error:
            what = f'line {number}: {error}; expected {{"input_ids": [1, 2, 3]}}'
            raise ValueError(what) from None


def _lines(blocks: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    held: list[bytes] = []
    size, number = 0, 1
    for block in blocks:
        *ended, rest = bytes(block).split(b"\n")
        for line in ended:
            yield b"".join([*held, line])
            held.clear()
            size, number = 0, number + 1
        held.append(rest)
        size += len(rest)
        if size > _LONGEST_ROW:
            raise ValueError(f"line {number} has more than {_LONGEST_ROW >> 20} MiB")
    yield b"".join(held)


def _check_length(number: bytes) -> None:
    if len(number) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(number)} digits is too large for an id")


def _numbers(words: list[bytes]) -> Ids:
    _check_length(max(words, key=len))
    # Numbers beyond 64 bits are capped: the decoder reports ids that are too large, with positions.
    return np.array([min(int(word), 2**63 - 1) for word in words], dtype=np.int64)


def read_npy(blocks: Iterator[bytes | memoryview]) -> Iterator[Ids]:
    """Yield the integers of a one-dimensional array in NumPy's format."""
    start = b""
    for block in blocks:
        start += block
        if len(start) >= _LONGEST_HEADER:
            break
    file = io.BytesIO(start)
    parser: Any = np.lib.format
    # The parser raises more than ValueError, and warns about headers that it repairs.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            version = parser.read_magic(file)
            if version == (1, 0):
                shape, _, dtype = parser.read_array_header_1_0(file)
            else:
                shape, _, dtype = parser.read_array_header_2_0(file)
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"not an npy file, or its header is damaged: {reason}") from None
    if dtype.kind not in "iu" or len(shape) != 1:
        raise ValueError(
            f"the npy file holds {dtype} of shape {shape}: expected a one-dimensional array of "
            "integers"
        )
    count, found = int(shape[0]), 0
    for ids in read_raw(itertools.chain([file.read()], blocks), dtype):
        found += len(ids)
        if found > count:
            break
        yield ids
    if found != count:
        more = "more" if found > count else f"only {found}"
        raise ValueError(f"the npy header says {count} ids, but the file has {more}")
