"""An object that is written block by block, and appears in its store when it is complete.

It is made in a temporary folder of this machine. So the store is asked when all bytes are known to
be right, and nothing has to be taken back.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from types import TracebackType

from ..files.part_file import named, write_all
from .objects import upload
from .urls import check_writable

__all__ = ["NewObject"]


class NewObject:
    """A context manager: leaving it without an exception uploads the object."""

    is_file = True

    def __init__(self, url: str, *, is_new: bool = False):
        """is_new: as for `upload`. Raises OSError where objects do not appear whole."""
        check_writable(url)
        self.name = url
        self._is_new = is_new
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="streamtok-"))
            self._path = os.path.join(folder, "object")  # errors name it: its disk may be full
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._fd = os.open(self._path, flags, 0o600)
            stack.callback(self._close)
            self._stack = stack.pop_all()

    def __enter__(self) -> NewObject:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            if kind is None:
                self._close()
                upload(self._path, self.name, is_new=self._is_new)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`. Raises OSError."""
        write_all(self._fd, data, self._path)

    def patch(self, offset: int, data: bytes) -> None:
        """Replace bytes that were written before. Raises OSError."""
        with named(self._path):
            os.lseek(self._fd, offset, os.SEEK_SET)
            write_all(self._fd, data, self._path)
            os.lseek(self._fd, 0, os.SEEK_END)

    def _close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with named(self._path):
                os.close(fd)
