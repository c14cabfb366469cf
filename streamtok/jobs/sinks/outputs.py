"""Opens outputs.

Standard output, FIFOs and devices are written directly. A file, or an object in a store, appears
only when it is complete.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
from typing import TypeAlias

from ...files import PartFile, is_folder, named, write_all
from ..stores import places
from ..stores.urls import check_writable, is_url

_STDOUT = 1
# Names of open descriptors, whose files are written to, never replaced.
_DESCRIPTORS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


class Pipe:
    """Standard output, a FIFO or a device: bytes are sent immediately and cannot be changed."""

    is_file = False

    def __init__(self, fd: int, name: str):
        self.fd = fd
        self.name = name

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd != _STDOUT:
            os.close(self.fd)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`. Raises OSError with the name of the output."""
        write_all(self.fd, data, self.name)

    def patch(self, data: bytes) -> None:
        raise io.UnsupportedOperation(f"{self.name} cannot be written out of order")


Output: TypeAlias = Pipe | PartFile
"""An open output, and a context manager: leaving it without an exception completes the output."""


def descriptor_of(path: str) -> int | None:
    """The open descriptor that a name such as "-" or /dev/stdout refers to, or None."""
    if found := _DESCRIPTOR.fullmatch(path):
        return int(found[1])
    return _DESCRIPTORS.get(path)


def check_output(path: str) -> bool:
    """Whether the output will be a new file: `path` is a regular file or a URL, or does not exist.

    Returns False for FIFOs, devices and open descriptors. Raises OSError: an IsADirectoryError for
    a folder, and the errors of `check_writable` for a URL.
    """
    if is_url(path):
        check_writable(path)
        return True
    if descriptor_of(path) is not None:
        return False
    if not os.path.basename(path):
        raise is_folder(path)
    with contextlib.suppress(FileNotFoundError):
        kind = os.stat(path).st_mode
        if stat.S_ISDIR(kind):
            raise is_folder(path)
        return stat.S_ISREG(kind)
    return True


def open_output(path: str) -> Output:
    """Open the output at `path`; "-" is standard output.

    FIFOs, devices and descriptors such as /dev/stdout are written directly. A URL is opened as a
    NewObject, anything else as a PartFile. Raises OSError; existing files are then unchanged.
    """
    if path == "-":
        return Pipe(_STDOUT, "standard output")
    if (fd := descriptor_of(path)) is not None:
        with named(path):
            return Pipe(os.dup(fd), path)
    if check_output(path):
        return places.open_new(path)
    return Pipe(os.open(path, os.O_WRONLY), path)
