"""Reads an object as a seekable file, or a range of its bytes in blocks."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from .objects import Stored, describe, naming_object, open_object

_BLOCK, _AHEAD = 1 << 20, 1 << 23  # bytes to read at a time, and to request from the store


class ObjectReader(io.RawIOBase):
    """An object, read as a file. All errors are OSErrors that name the URL."""

    def __init__(self, url: str, window: int, about: Stored | None = None):
        """window: the minimum number of bytes per request. about: an earlier result of `describe`.

        Raises OSError.
        """
        super().__init__()
        self.name = url
        self.size = (about or describe(url)).size
        self._file = open_object(url, window)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        before = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        self._at = max(before + offset, 0)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, or as much of it as the object has. Raises OSError."""
        target = memoryview(buffer).cast("B")
        if self._at >= self.size:
            return 0
        with naming_object(self.name):
            self._file.seek(self._at)  # all readers of a memory:// object share one position
            data = self._file.read(len(target))
        target[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def read_blocks(
    url: str,
    about: Stored,
    start: int,
    stop: int | None,
    waiting: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> Iterator[bytes]:
    """Yield the bytes from `start` to `stop`, or to the end, in blocks.

    about: an earlier result of `describe`. Raises OSError, including if the object has changed
    since then or ends too early. Waits inside `waiting()`.
    """
    end = about.size if stop is None else min(stop, about.size)
    at = start
    with ObjectReader(url, _AHEAD, about) as file:
        file.seek(start)
        while at < end:
            with waiting():
                block = file.read(min(_BLOCK, end - at))
            if not block:
                break
            at += len(block)
            yield block
    if at < end:
        raise OSError(errno.EIO, f"the store sent {at} of {end} bytes", url)
    if describe(url) != about:
        raise OSError(errno.EBUSY, "it changed while it was being read: run the command again", url)
