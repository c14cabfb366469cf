"""Follows a growing file as `tail -F` does: by name, from its first byte, forever.

When another file takes the name (rotation by rename), the old one is read to its end first, then
any files rotated in between, then the new one. When the file gets shorter or its beginning changes
(copytruncate), it is read again from its beginning. All of this is one stream of bytes. Bytes
written between the last look and a truncation are lost, as for every reader of such logs. The
process sleeps between two looks.

Rotated files are those named PATH.1, PATH-20240101 and the like, in the order of their modification
times. A file that was compressed before it was read raises an error.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...errors import CheckpointError
from ...files.named_errors import naming
from .blocks import BLOCK_SIZE, Waiting, read_descriptor, read_once
from .compression import START_SIZE, detect, unpack

_HEAD = 256  # bytes that distinguish a file from another one with the same inode
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_DATE = 6  # digits of the shortest date; fewer digits are a number that grows with age
# What rotation appends to a name. Other neighbours, such as app.log.lock, are not part of the log.
_ROTATED = re.compile(r"[.-](\d[\dTZ.:_-]*?|old|prev)(\.(?:gz|bz2|xz|zst|lz4|Z|zip))?")


class Follower:
    """Reads a followed file. `position(n)` tells which file holds byte n of the stream, and where.

    The position is JSON: "at" (offset in the stream), "file" (device and inode, or null), "offset"
    (in that file), "size" and "sha256" (of its first bytes).
    """

    def __init__(
        self,
        path: str,
        *,
        interval: float = 0.2,
        size: int = BLOCK_SIZE,
        waiting: Waiting = contextlib.nullcontext,
        missing: Callable[[str], None] = lambda path: None,
    ):
        """missing: called once with the path if the file is not there yet."""
        self.path = path
        self._missing = missing
        self._interval = interval
        self._size = size
        self._waiting = waiting
        self._fd = -1
        self._offset = 0  # in the open file
        self._read = 0  # bytes of the stream
        self._segments: list[dict[str, Any]] = []  # the files in order: where each one began
        self._saved: dict[str, Any] | None = None  # the position to continue from
        self._is_catching_up = False  # from the file of that position to the named one

    def blocks(self, position: dict[str, Any] | None = None) -> Iterator[bytes]:
        """Yield blocks forever, from a saved position if there is one.

        Waits if the file does not exist. Raises OSError if it cannot be read, and CheckpointError
        if the file of the position is missing or a file was compressed before it was read.
        """
        self._saved = position
        try:
            with naming(self.path):
                yield from self._read_on(position)
        finally:
            self._close()

    def _read_on(self, position: dict[str, Any] | None) -> Iterator[bytes]:
        if position is not None:
            self._go_on(position)
        while True:
            if self._fd < 0 and not self._open(self.path):
                self._say_missing()
                self._sleep()
                continue
            block = read_once(self._fd, self.path, self._size, self._waiting)
            if block and self._is_same_file():
                yield self._took(block)
            elif not self._switch_file():
                self._sleep()

    def position(self, at: int) -> dict[str, Any]:
        """The position of byte `at` of the stream, for JSON. `at` must not decrease."""
        while len(self._segments) > 1 and self._segments[1]["start"] <= at:
            del self._segments[0]
        if not self._segments:
            return self._saved or {"at": at, "file": None}
        one = self._segments[0]
        offset = one["offset"] + at - one["start"]
        return {"at": at, "file": [one["device"], one["inode"]], "offset": offset, **one["head"]}

    def _say_missing(self) -> None:
        missing, self._missing = self._missing, lambda path: None
        missing(self.path)

    def _open(self, path: str, offset: int = 0) -> bool:
        try:
            check_regular(path)  # to open a pipe would wait for its writer
            self._fd = os.open(path, _READ)
        except FileNotFoundError:
            return False
        os.lseek(self._fd, offset, os.SEEK_SET)
        self._begin(offset)
        return True

    def _begin(self, offset: int) -> None:
        status = os.fstat(self._fd)
        self._offset = offset
        self._segments.append(
            {
                "start": self._read,
                "offset": offset,
                "device": status.st_dev,
                "inode": status.st_ino,
                "head": _head(self._fd, offset),
            }
        )

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _took(self, block: bytes) -> bytes:
        self._offset += len(block)
        self._read += len(block)
        head = self._segments[-1]["head"]
        if head["size"] < _HEAD:
            head.update(_head(self._fd, self._offset))
        return block

    def _is_same_file(self) -> bool:
        # A file truncated and then written past our offset between two looks differs only in its
        # first bytes.
        head = self._segments[-1]["head"]
        return bool(_head(self._fd, head["size"]) == head)

    def _switch_file(self) -> bool:
        """At the end of the open file: open another one, or the same from its start, if due."""
        status = os.fstat(self._fd)
        if status.st_size < self._offset or not self._is_same_file():
            os.lseek(self._fd, 0, os.SEEK_SET)
            self._begin(0)
            return True
        if self._named_inode() == _inode(status):
            self._is_catching_up = False
            return False
        # The writer may still have the old file open and append a last line to it.
        self._sleep()
        if os.fstat(self._fd).st_size > self._offset:
            return True
        return self._next_file()

    def _next_file(self) -> bool:
        """Open the file that came after the open one. False if there is none yet."""
        status = os.fstat(self._fd)
        while True:
            try:
                path, inode = self._place_after(status)
                if inode is None or inode == _inode(status):
                    return False  # the new file does not exist yet
                fd = os.open(path, _READ)
            except FileNotFoundError:
                continue  # rotated again meanwhile
            with contextlib.ExitStack() as stack:
                stack.callback(os.close, fd)
                with contextlib.suppress(FileNotFoundError):
                    again = self._place_after(status)
                    # It is still the right file, and no other one has come before it.
                    if _inode(os.fstat(fd)) == inode and again == (path, inode):
                        stack.pop_all()
                        self._close()
                        self._fd = fd
                        self._begin(0)
                        return True

    def _place_after(self, status: os.stat_result) -> tuple[str, tuple[int, int] | None]:
        """The path, device and inode of the oldest file newer than the open one with `status`."""
        rotated = _rotated(self.path)
        places = [i for i, one in enumerate(rotated) if one.inode == _inode(status)]
        if places:
            later = rotated[places[0] + 1 :]
        else:  # the open file was deleted or compressed
            later = [one for one in rotated if one.time >= status.st_mtime_ns]
        for one in later:
            if not (one.has_compressed_name or _is_compressed(one.path)):
                return one.path, one.inode
            # While the open file exists uncompressed, only older files are compressed.
            if self._is_catching_up or not (places or self._is_copy(one.path)):
                raise CheckpointError(
                    f"{one.path} was rotated and compressed before it was read: decompress it first"
                )
        return self.path, self._named_inode()

    def _is_copy(self, path: str) -> bool:
        """Whether a compressed file begins with the same bytes as the open file."""
        head = self._segments[-1]["head"]
        fd = os.open(path, _READ)
        try:
            start = b""
            for text in unpack(read_descriptor(fd, path), path):
                start += text
                if len(start) >= _HEAD:
                    break
        finally:
            os.close(fd)
        return bool(_head_of(start[: head["size"]]) == head)

    def _named_inode(self) -> tuple[int, int] | None:
        try:
            return _inode(os.stat(self.path))
        except FileNotFoundError:
            return None

    def _sleep(self) -> None:
        with self._waiting():
            time.sleep(self._interval)

    def _go_on(self, position: dict[str, Any]) -> None:
        """Open the file of a saved position at its place."""
        self._read = position["at"]
        if position["file"] is None:
            return
        path = self._path_of(*position["file"])
        if not self._open(path, position["offset"]):
            raise CheckpointError(f"{path} was removed while it was being opened")
        found = {"size": position["size"], "sha256": position["sha256"]}
        size = os.fstat(self._fd).st_size
        if size < position["offset"] or _head(self._fd, position["size"]) != found:
            raise CheckpointError(
                f"{path} was truncated or rewritten since the checkpoint: its old content is lost"
            )
        self._is_catching_up = True

    def _path_of(self, device: int, inode: int) -> str:
        """The path that the file of a checkpoint has now. Raises CheckpointError."""
        if self._named_inode() == (device, inode):
            return self.path
        for one in _siblings(self.path):
            if one.inode() == inode and one.is_file():
                return one.path
        raise CheckpointError(
            f"{self.path} was rotated since the checkpoint, and neither {self.path}.* nor "
            f"{self.path}-* is the file that was read then: its rest is lost"
        )


class _Rotated(NamedTuple):
    """A rotated file. Sorts by age, oldest first.

    Of files with the same time, the one with the highest number or the earliest date is the oldest.
    """

    time: int
    number: int
    suffix: str
    inode: tuple[int, int]
    path: str
    has_compressed_name: bool


def _rotated(path: str) -> list[_Rotated]:
    """The files that had the name `path` before, oldest first."""
    found = []
    skipped = len(os.path.basename(path))
    siblings: list[os.DirEntry[str]] = []
    with contextlib.suppress(PermissionError):  # the folder can be searched but not listed
        siblings = _siblings(path)
    for one in siblings:
        name = _ROTATED.fullmatch(one.name, skipped)
        with contextlib.suppress(FileNotFoundError):  # rotated again meanwhile
            if name and one.is_file():
                status = one.stat()
                number = -int(name[1]) if name[1].isdecimal() and len(name[1]) < _DATE else 0
                place = status.st_mtime_ns, number, name[1]
                found.append(_Rotated(*place, _inode(status), one.path, bool(name[2])))
    return sorted(found)


def check_regular(path: str) -> None:
    """Raise OSError if what has the name is not a regular file, or there is nothing."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.ESPIPE, "only a regular file can be followed", path)


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _is_compressed(path: str) -> bool:
    with open(path, "rb") as file:
        return detect(file.read(START_SIZE)) is not None


def _siblings(path: str) -> list[os.DirEntry[str]]:
    folder, name = os.path.split(os.path.abspath(path))
    with os.scandir(folder) as entries:
        return [e for e in entries if e.name.startswith((f"{name}.", f"{name}-"))]


def _head(fd: int, size: int) -> dict[str, Any]:
    return _head_of(os.pread(fd, min(size, _HEAD), 0))


def _head_of(data: bytes) -> dict[str, Any]:
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
