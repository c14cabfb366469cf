"""Blocks of bytes as they come, from files and descriptors.

Nothing here knows documents or encodings. Who waits for a descriptor does it inside `waiting()`, a
context that a command line uses to hear signals there and only there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

Waiting: TypeAlias = Callable[[], AbstractContextManager[None]]

BLOCK_SIZE = 1 << 16
STDIN = 0


def read_descriptor(
    fd: int, name: str, size: int = BLOCK_SIZE, waiting: Waiting = contextlib.nullcontext
) -> Iterator[bytes]:
    """Iterator[bytes]: what has arrived, as it arrives, at most `size` bytes at a time.

    Raises OSError with `name`. A descriptor that does not block is waited for without a busy loop.
    """
    while block := read_once(fd, name, size, waiting):
        yield block


def read_once(fd: int, name: str, size: int, waiting: Waiting) -> bytes:
    """bytes: what has arrived, at most `size`; none at the end. Raises OSError with `name`."""
    while True:
        try:
            if wait_for(fd, waiting):
                return os.read(fd, size)
            with waiting():
                return os.read(fd, size)
        except BlockingIOError:  # somebody else reads from it, too, and was faster
            continue
        except OSError as error:
            raise OSError(error.errno, error.strerror, name) from error


def wait_for(fd: int, waiting: Waiting) -> bool:
    """bool: True when there is something to read, or the end; False where nobody can tell.

    What interrupts `waiting` loses nothing, because nothing is read here.
    """
    try:
        with waiting():
            if hasattr(select, "poll"):  # unlike select, for descriptors of any number
                poll = select.poll()
                poll.register(fd, select.POLLIN)
                poll.poll()
            else:
                select.select([fd], [], [])
    except (OSError, ValueError):  # not a socket, on Windows
        return False
    return True


def is_ready(fd: int) -> bool:
    """bool: whether `read_once` would not wait; False, too, where nobody knows."""
    try:
        return bool(select.select([fd], [], [], 0)[0])
    except (OSError, ValueError):  # not a socket, on Windows
        return False


def check_file(path: str) -> int | None:
    """int | None: bytes of a regular file, None for what has no size.

    Raises OSError if it cannot be read.
    """
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        return None
    with open(path, "rb") as file:
        return os.fstat(file.fileno()).st_size
