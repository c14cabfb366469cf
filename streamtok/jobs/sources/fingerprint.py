"""Tells whether an input is still the same, by its size and contents instead of its times.

A file that was only touched, copied back or moved to another disk is the same input, so a job
continues with it. Only samples of the contents are compared: a change that keeps the size and
misses every sample is not noticed. While a file is being read, the samples are compared only if
the file's times or inode have changed.
"""

from __future__ import annotations

import errno
import hashlib
import os
from typing import Any

from ...files import naming
from ..stores.objects import Stored, describe
from ..stores.urls import is_url

_SAMPLES = 8  # from the first byte to the last, evenly spaced
_SAMPLE_SIZE = 1 << 13  # bytes; a file of up to 64 KiB is compared completely
_DIGITS = 32  # hexadecimal digits of the digest


def fingerprint(path: str) -> Stored:
    """The current fingerprint of a regular file or an object. Raises OSError.

    Costs eight short reads of a file.
    """
    if is_url(path):
        return describe(path)
    with naming(path), open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256(b"%d" % size)
        last = max(size - _SAMPLE_SIZE, 0)
        for number in range(_SAMPLES):
            file.seek(last * number // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_SIZE))
    return Stored(size, digest.hexdigest()[:_DIGITS])


class FileWatch:
    """The state of a regular file or an object when a command begins. size: its size in bytes.

    `check` raises OSError if a file has changed. For objects, `read_blocks` checks this at the end.
    """

    def __init__(self, path: str, name: str):
        """name: for errors. Raises OSError."""
        self._path = path
        self._name = name
        self._found: Stored | None = None
        self._status: os.stat_result | None = None
        if is_url(path):
            self._found = describe(path)
            self.size = self._found.size
        else:
            self._status = os.stat(path)
            self.size = self._status.st_size

    def fingerprint(self) -> Stored:
        """The fingerprint, taken at the first call. Raises OSError."""
        if self._found is None:
            self._found = fingerprint(self._path)
        return self._found

    def check(self, read: int, stop: int | None = None) -> None:
        """Raise OSError if the file has changed, or is shorter than it should be.

        read: bytes read so far. stop: bytes that should have been read; None: all.
        """
        before = self._status
        if before is None:
            return
        try:
            now = os.stat(self._path)
        except FileNotFoundError:
            raise self._changed("it was removed") from None
        if now.st_size != before.st_size:
            more = "; --follow reads a file that grows" if now.st_size > before.st_size else ""
            raise self._changed(f"it had {before.st_size:,} bytes, now {now.st_size:,}{more}")
        is_touched = _times(now) != _times(before)
        expected = before.st_size if stop is None else stop
        # Files of the kernel, as in /proc, report a wrong size and occupy no blocks.
        if read < expected and (is_touched or getattr(now, "st_blocks", True)):
            raise self._changed(f"it had {expected:,} bytes, of which {read:,} could be read")
        if is_touched and self._found is not None and fingerprint(self._path) != self._found:
            raise self._changed("its size is the same, but its contents differ")

    def _changed(self, what: str) -> OSError:
        return OSError(errno.EBUSY, f"it changed while it was being read: {what}", self._name)


def _times(status: os.stat_result) -> tuple[Any, ...]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
