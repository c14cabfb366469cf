"""Where bytes go: standard output, a FIFO or a device, or a file that appears when it is complete."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
from types import TracebackType
from typing import Protocol

from ...files.part_file import NewFile, named, write_all

_STDOUT = 1
# Names of descriptors that are open already: what they stand for is written, never replaced.
_DESCRIPTORS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


class Writable(Protocol):
    """A place for bytes. is_file: nothing is seen before it is complete, and `patch` works."""

    name: str
    is_file: bool

    def write(self, data: bytes | memoryview) -> None: ...
    def patch(self, offset: int, data: bytes) -> None: ...


class Output(Writable, Protocol):
    """One that is used in a `with`: leaving it without an exception completes it."""

    def __enter__(self) -> Output: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


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
        write_all(self.fd, data, self.name)

    def patch(self, offset: int, data: bytes) -> None:
        raise io.UnsupportedOperation(f"{self.name} cannot be written out of order")


def descriptor_of(path: str) -> int | None:
    """int | None: the open descriptor that a name such as "-" or /dev/stdout stands for."""
    if found := _DESCRIPTOR.fullmatch(path):
        return int(found[1])
    return _DESCRIPTORS.get(path)


def check_output(path: str) -> bool:
    """bool: whether a file will be made or replaced there; FIFOs, devices and open descriptors are
    written as they are.

    Raises IsADirectoryError for a folder.
    """
    if descriptor_of(path) is not None:
        return False
    with contextlib.suppress(FileNotFoundError):
        kind = os.stat(path).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return stat.S_ISREG(kind)
    return True


def open_output(path: str) -> Output:
    """Output: "-" is standard output, a FIFO, a device or a descriptor such as /dev/stdout is
    written as it is, all else a NewFile.

    Raises OSError where nothing can be written; nothing is lost then.
    """
    if path == "-":
        return Pipe(_STDOUT, "standard output")
    if (fd := descriptor_of(path)) is not None:
        with named(path):
            return Pipe(os.dup(fd), path)
    if check_output(path):
        return NewFile(path)
    return Pipe(os.open(path, os.O_WRONLY), path)
