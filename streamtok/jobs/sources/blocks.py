"""Reads blocks of bytes from files, pipes and objects in stores, as the bytes arrive.

All waiting for a descriptor happens inside `waiting()`. The command line lets signals stop the
process only inside this context manager. This module does not know documents or encodings.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

from ...files import naming
from ..stores import places
from ..stores.object_reader import read_blocks
from ..stores.objects import Stored, describe
from ..stores.urls import is_url
from .compression import START_SIZE, detect

Waiting: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Makes the context manager in which to wait."""

BLOCK_SIZE = 1 << 16
STDIN = 0
_AHEAD = 1 << 23  # bytes of a file to read ahead


def open_blocks(
    place: str,
    name: str | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
    size: int = BLOCK_SIZE,
    waiting: Waiting = contextlib.nullcontext,
    about: Stored | None = None,
    on_open: Callable[[int], None] = lambda fd: None,
) -> Iterator[bytes]:
    """Yield the bytes start:stop of a path or URL, at most `size` at a time, as they arrive.

    place: a path, a URL, or "-" for standard input; `start` must be 0 except for files and objects.
    name: the name for errors, by default `place`. Waits inside `waiting()`. about: an earlier
    result of `describe` for the object. on_open: called with the descriptor of a file or a pipe,
    which the generator closes at its end unless it is standard input. Raises OSError.
    """
    name = place if name is None else name
    if is_url(place):
        about = describe(place) if about is None else about
        for block in read_blocks(place, about, start, stop, waiting):
            for at in range(0, len(block), size):
                yield block[at : at + size]
        return
    with contextlib.ExitStack() as stack:
        fd = STDIN
        if place != "-":
            with waiting():  # opening a FIFO waits for its writer
                fd = os.open(place, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            stack.callback(os.close, fd)
            stack.enter_context(naming(name))
        on_open(fd)
        if start:
            os.lseek(fd, start, os.SEEK_SET)
        blocks = read_descriptor(fd, name, size, waiting)
        stack.enter_context(contextlib.closing(blocks))  # type: ignore[type-var]  # a generator
        yield from blocks if stop is None else up_to(blocks, stop - start)


def is_compressed(place: str) -> bool:
    """Whether a file or an object begins like compressed data. Raises OSError."""
    return detect(places.read_head(place, START_SIZE)) is not None


def read_descriptor(
    fd: int, name: str, size: int = BLOCK_SIZE, waiting: Waiting = contextlib.nullcontext
) -> Iterator[bytes]:
    """Yield the bytes of a descriptor as they arrive, at most `size` at a time, until its end.

    Raises OSError with `name`. Waits for a non-blocking descriptor without a busy loop.
    """
    is_always_ready = stat.S_ISREG(os.fstat(fd).st_mode)
    at = asked = os.lseek(fd, 0, os.SEEK_CUR) if is_always_ready else 0
    while block := read_once(fd, name, size, waiting, is_always_ready):
        if is_always_ready:
            at += len(block)
            if at + _AHEAD // 2 > asked:
                asked = max(at, asked)
                _ask_for(fd, asked, _AHEAD)
                asked += _AHEAD
        yield block


def _ask_for(fd: int, at: int, size: int) -> None:
    """Ask the system to read a part of a file from the disk, without waiting for it.

    By default the system reads only 128 KiB ahead, so the caller would often wait for the disk.
    """
    # Windows and macOS do not have the call, which is only a hint.
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(fd, at, size, os.POSIX_FADV_WILLNEED)


def read_once(
    fd: int, name: str, size: int, waiting: Waiting, is_always_ready: bool = False
) -> bytes:
    """Wait for bytes and read at most `size`; b"" at the end. Raises OSError with `name`.

    is_always_ready: the descriptor is a regular file, so there is no need to poll.
    """
    while True:
        try:
            if is_always_ready:
                with waiting():
                    pass
            elif not wait_for(fd, waiting):
                with waiting():
                    return os.read(fd, size)
            return os.read(fd, size)
        except BlockingIOError:  # another reader of the same descriptor was faster
            continue
        except OSError as error:
            raise OSError(error.errno, error.strerror, name) from error


def wait_for(fd: int, waiting: Waiting) -> bool:
    """Wait until there are bytes to read or the input ends; False if the system cannot tell.

    No bytes are read here, so an exception raised inside `waiting()` loses none.
    """
    try:
        with waiting():
            if hasattr(select, "poll"):  # works for descriptors above 1023, unlike select
                poll = select.poll()
                poll.register(fd, select.POLLIN)
                poll.poll()
            else:
                select.select([fd], [], [])
        return True
    except (OSError, ValueError):  # on Windows, only sockets can be polled
        return False


def is_ready(fd: int) -> bool:
    """Whether `read_once` would return without waiting; False if the system cannot tell."""
    try:
        return bool(select.select([fd], [], [], 0)[0])
    except (OSError, ValueError):  # on Windows, only sockets can be polled
        return False


def skip_known(blocks: Iterator[bytes], size: int, crc: int, changed: Exception) -> Iterator[bytes]:
    """Yield the blocks without their first `size` bytes, which an earlier run has read.

    Raises `changed` if there are fewer bytes, or if their CRC-32 is not `crc`.
    """
    found, rest = 0, b""
    while size and (block := next(blocks, b"")):
        found = zlib.crc32(memoryview(block)[:size], found)
        rest = block[size:]
        size = max(0, size - len(block))
    if size or found != crc:
        raise changed
    if rest:
        yield rest
    yield from blocks


def up_to(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes."""
    for block in blocks:
        if len(block) >= size:
            yield block[:size]
            return
        size -= len(block)
        yield block


def check_file(path: str) -> int | None:
    """The size in bytes of a regular file or an object; None for a pipe or a device.

    Raises OSError if it cannot be read or is a folder.
    """
    if is_url(path):
        return describe(path).size
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        return None
    with open(path, "rb") as file:
        return os.fstat(file.fileno()).st_size
