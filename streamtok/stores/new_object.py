"""An object that is written block by block, and appears in its store when it is complete.

It is made in a temporary folder of this machine. So the store is asked when all bytes are known to
be right, and nothing has to be taken back.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from types import TracebackType

from .objects import upload
from .urls import check_writable

__all__ = ["NewObject"]


class NewObject:
    """A context manager: leaving it without an exception uploads the object."""

    is_file = True

    def __init__(self, url: str):
        """Raises OSError for a store in which objects do not appear whole."""
        check_writable(url)
        self.name = url
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="streamtok-"))
            self._path = os.path.join(folder, "object")
            self._file = stack.enter_context(open(self._path, "wb"))
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
                self._file.close()
                upload(self._path, self.name)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of `data`. Raises OSError."""
        self._file.write(data)

    def patch(self, offset: int, data: bytes) -> None:
        """Replace bytes that were written before. Raises OSError."""
        self._file.seek(offset)
        self._file.write(data)
        self._file.seek(0, os.SEEK_END)
