"""Ids in files: four formats, written as they come and read back.

u16, u32: little-endian, nothing else. npy: numpy's file of one row. text: decimal, one id a line.
A file appears under its name only when it is complete. Nothing here knows an encoding.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import stat
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    IdArray = npt.NDArray[np.uint32]
    Ids = npt.NDArray[Any]

FORMATS = ("u16", "u32", "npy", "text")
_SUFFIXES = {".npy": "npy", ".txt": "text", ".u16": "u16", ".u32": "u32"}
_STDOUT = 1
_MANY = 256  # ids; for fewer, numpy is slower than str

# Outputs: where bytes go.


class Output(Protocol):
    """A place for bytes, used in a `with`: leaving it without an exception completes it."""

    name: str
    is_file: bool  # nothing is seen before it is complete, and `patch` works

    def __enter__(self) -> Output: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def write(self, data: bytes | memoryview) -> None: ...
    def patch(self, offset: int, data: bytes) -> None: ...


class Pipe:
    """Standard output, a FIFO or a device: what is written is gone at once."""

    is_file = False

    def __init__(self, fd: int, name: str):
        self.fd = fd
        self.name = name

    def __enter__(self) -> Pipe:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.fd != _STDOUT:
            os.close(self.fd)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of it. Raises OSError with the name of the output."""
        _write_all(self.fd, data, self.name)

    def patch(self, offset: int, data: bytes) -> None:
        raise io.UnsupportedOperation(f"{self.name} cannot be written out of order")


class NewFile:
    """A file that appears, or replaces the old one, when it is complete and on the disk.

    Until then it is a hidden `.streamtok-….part` in the same folder, removed on any exception.
    The mode of a file that is replaced is kept, and a symbolic link is followed.
    """

    is_file = True

    def __init__(self, path: str):
        """Raises OSError where no file can be made, or the old one may not be written."""
        self.name = path
        self._final = os.path.realpath(path)
        mode = None
        with contextlib.suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.stat(self._final).st_mode)
            if not os.access(self._final, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        folder = os.path.dirname(self._final)
        self._part = os.path.join(folder, f".streamtok-{os.urandom(8).hex()}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with _named(path):
            self._fd = os.open(self._part, flags, 0o666)
            if mode is not None:
                with contextlib.suppress(OSError):
                    os.chmod(self._part, mode)

    def __enter__(self) -> NewFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_complete = False
        try:
            if kind is None:
                with _named(self.name):
                    os.fsync(self._fd)
        finally:
            try:
                with _named(self.name):
                    os.close(self._fd)
                    if kind is None:
                        os.replace(self._part, self._final)
                        is_complete = True
            finally:
                if not is_complete:
                    with contextlib.suppress(OSError):
                        os.remove(self._part)
        if is_complete:
            _sync_folder(os.path.dirname(self._final))

    def write(self, data: bytes | memoryview) -> None:
        """Write all of it. Raises OSError with the name of the output."""
        _write_all(self._fd, data, self.name)

    def patch(self, offset: int, data: bytes) -> None:
        """Write over what is at `offset`."""
        with _named(self.name):
            os.lseek(self._fd, offset, os.SEEK_SET)
            _write_all(self._fd, data, self.name)
            os.lseek(self._fd, 0, os.SEEK_END)


def open_output(path: str) -> Output:
    """Output: "-" is standard output, a FIFO or device is written as it is, all else a NewFile.

    Raises OSError where nothing can be written; nothing is lost then.
    """
    if path == "-":
        return Pipe(_STDOUT, "standard output")
    with contextlib.suppress(FileNotFoundError):
        kind = os.stat(path).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(kind):
            return Pipe(os.open(path, os.O_WRONLY), path)
    return NewFile(path)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Name the output in every OSError: users know nothing of descriptors and part files."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def _write_all(fd: int, data: bytes | memoryview, name: str) -> None:
    # A pipe may take a part only; one that somebody made non-blocking may take nothing for now.
    rest = memoryview(data)
    with _named(name):
        while rest:
            try:
                rest = rest[os.write(fd, rest) :]
            except BlockingIOError:
                select.select([], [fd], [])


def _sync_folder(folder: str) -> None:
    # The file is there; a file system that cannot sync folders takes nothing from that.
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


# Sinks: ids to bytes, one class for each format.


class Sink(Protocol):
    """Takes ids; `finish` completes what it wrote."""

    def write(self, ids: IdArray) -> None: ...
    def finish(self) -> None: ...


class RawSink:
    """u16 or u32, little-endian."""

    def __init__(self, output: Output, width: int):
        self._output = output
        self._dtype = np.dtype(f"<u{width}")

    def write(self, ids: IdArray) -> None:
        if len(ids):
            self._output.write(ids.astype(self._dtype, copy=False).view(np.uint8).data)

    def finish(self) -> None:
        pass


class NpySink:
    """numpy's format 1.0: a header of fixed size, whose count is written when it is known."""

    HEADER_SIZE = 128

    def __init__(self, output: Output, width: int):
        self._output = output
        self._raw = RawSink(output, width)
        self._width = width
        self._count = 0
        output.write(self._header())

    def _header(self) -> bytes:
        shape = f"{{'descr': '<u{self._width}', 'fortran_order': False, 'shape': ({self._count},)}}"
        room = self.HEADER_SIZE - 10
        return (
            b"\x93NUMPY\x01\x00"
            + room.to_bytes(2, "little")
            + shape.encode().ljust(room - 1)
            + b"\n"
        )

    def write(self, ids: IdArray) -> None:
        self._raw.write(ids)
        self._count += len(ids)

    def finish(self) -> None:
        self._output.patch(0, self._header())


class TextSink:
    """Decimal, one id a line: the bytes do not depend on how the input was cut into chunks."""

    def __init__(self, output: Output):
        self._output = output

    def write(self, ids: IdArray) -> None:
        if len(ids):
            self._output.write(format_text(ids))

    def finish(self) -> None:
        pass


def format_text(ids: IdArray) -> bytes:
    """bytes: the ids in decimal, a line end after each."""
    if len(ids) < _MANY:
        return "".join([f"{one}\n" for one in ids.tolist()]).encode()
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
    return digits[is_shown].tobytes()


def fitting_width(max_id: int) -> int:
    """int: bytes of the narrowest id format that holds `max_id`, 2 or 4."""
    return 2 if max_id <= 0xFFFF else 4


def choose_format(wanted: str | None, path: str, max_id: int, default: str = "raw") -> str:
    """str: one of FORMATS: the wanted one, else what the path's suffix says, else `default`.

    "-" is text. "raw" is u16 if the vocabulary fits, else u32. Raises ValueError for u16 if it
    does not fit.
    """
    by_name = "text" if path == "-" else _SUFFIXES.get(os.path.splitext(path)[1].lower(), default)
    chosen = wanted or by_name
    if chosen == "raw":
        chosen = "u16" if fitting_width(max_id) == 2 else "u32"
    if chosen == "u16" and fitting_width(max_id) > 2:
        raise ValueError(
            f"u16 does not hold this vocabulary, whose highest id is {max_id}: use u32"
        )
    return chosen


def make_sink(output: Output, chosen: str, max_id: int) -> Sink:
    """Sink: of one of FORMATS. Raises ValueError for npy where the header cannot be patched."""
    if chosen == "text":
        return TextSink(output)
    if chosen == "npy":
        if not output.is_file:
            raise ValueError(
                f"npy has its count in front and cannot go to {output.name}: "
                "give a file with -o, or use u16, u32 or text"
            )
        return NpySink(output, fitting_width(max_id))
    return RawSink(output, 2 if chosen == "u16" else 4)


# Reading ids back.

_NOT_IDS = b"0123456789 \t\r\n,[]"
_TO_BLANKS = bytes.maketrans(b",[]", b"   ")
_LONGEST_NUMBER = 20  # digits; leading zeros included


def read_ids(blocks: Iterable[bytes | memoryview], chosen: str) -> Iterator[Ids]:
    """Iterator of integer arrays: the ids in the blocks, whose borders may be anywhere.

    text: decimal, with blanks, line ends, commas or brackets between. Raises ValueError for what
    is not of the format or ends too early.
    """
    if chosen == "text":
        return _read_text(blocks)
    if chosen == "npy":
        return _read_npy(iter(blocks))
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


def _chain(first: bytes, rest: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    yield first
    yield from rest
