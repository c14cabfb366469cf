"""Reads an object: as a file that can be searched, or in blocks from one byte to another.

Both ask for ranges of bytes, so a connection that is cut costs one range. `read_blocks` asks for
the next two ranges while the caller works on the last one.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from ..parallel.ordered_pool import OrderedPool
from .objects import Stored, describe, open_stream, read_range

_FIRST, _LARGEST = 1 << 18, 1 << 23  # bytes of a range: few for who needs the beginning only
_AHEAD = 2  # ranges that are asked for or kept


class ObjectReader(io.RawIOBase):
    """An object as a file for reading. Keeps the last range that it asked for."""

    def __init__(self, url: str, window: int = _FIRST):
        """window: bytes to ask for at least. Raises OSError, also if the size is not known."""
        super().__init__()
        size = describe(url).size
        if size is None:
            raise OSError(errno.ESPIPE, "the store does not tell the size: download it first", url)
        self.name = url
        self.size = size
        self._window = window
        self._at = 0
        self._start = 0  # of the kept bytes
        self._kept = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position, as for any file."""
        before = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        self._at = max(before + offset, 0)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer, unless the object ends before. Raises OSError."""
        target = memoryview(buffer).cast("B")
        done = 0
        while done < len(target) and self._at < self.size:
            inside = self._at - self._start
            if not 0 <= inside < len(self._kept):
                stop = min(self._at + max(len(target) - done, self._window), self.size)
                self._kept = read_range(self.name, self._at, stop)
                self._start, inside = self._at, 0
            data = memoryview(self._kept)[inside : inside + len(target) - done]
            target[done : done + len(data)] = data
            done += len(data)
            self._at += len(data)
        return done


def read_blocks(
    url: str,
    about: Stored,
    start: int,
    stop: int | None,
    waiting: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> Iterator[bytes]:
    """Yield the bytes from `start` to `stop`, or to the end, in blocks.

    about: what `describe` said before. Raises OSError, also if the object is another one at the
    end. Waits inside `waiting()`. An object of unknown size is read by one request, which cannot
    be tried again.
    """
    if about.size is None:
        yield from _stream(url, start, waiting)
        return
    end = about.size if stop is None else min(stop, about.size)
    stopped = threading.Event()
    pool: OrderedPool[bytes, str] = OrderedPool(2)
    size = _FIRST
    try:
        while start < end or len(pool):
            while start < end and len(pool) < _AHEAD:
                at = min(start + size, end)
                pool.add(functools.partial(read_range, url, start, at, stopped), url)
                start, size = at, min(2 * size, _LARGEST)
            with waiting():
                block = pool.take()
            yield block
    finally:
        stopped.set()
        pool.close()
    if describe(url) != about:
        raise OSError(errno.EBUSY, "it has changed while it was read: run the command again", url)


def _stream(
    url: str, skipped: int, waiting: Callable[[], AbstractContextManager[object]]
) -> Iterator[bytes]:
    with open_stream(url) as file:
        while True:
            try:
                with waiting():
                    block = file.read(_FIRST)
            except Exception as error:
                raise OSError(errno.EIO, f"the store failed: {error}", url) from error
            if not block:
                return
            rest = block[skipped:]
            skipped -= len(block) - len(rest)
            if rest:
                yield rest
