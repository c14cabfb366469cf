"""A file that others write to, followed as `tail -F` does: by name, from its first byte, for ever.

When the name gets another file (rotation by rename), the old one is read to its end first, then the
files that were rotated in between if there are any, then the named one. When the file gets shorter
or begins otherwise (copytruncate), it is read from its beginning. All of them are one stream of
bytes. What is written between our last look and a truncation is lost, as for every reader of such
logs. Between two looks the process sleeps.

Rotated files are those named PATH.1, PATH-20240101 and the like, in the order of their times of
modification. One that was compressed before it was read is an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...errors import CheckpointError
from .blocks import BLOCK_SIZE, Waiting, read_descriptor, read_once
from .compression import START_SIZE, detect, unpack

_HEAD = 256  # bytes that tell a file from another one with the same inode
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_DATE = 6  # digits: fewer are a number that grows with age
# What rotation puts behind a name; other neighbours, such as app.log.lock, are none of the log.
_ROTATED = re.compile(r"[.-](\d[\dTZ.:_-]*?|old|prev)(\.(?:gz|bz2|xz|zst|lz4|Z|zip))?")


class Follower:
    """Blocks of a followed file. `position(n)` says where in which file byte n of the stream is."""

    def __init__(
        self,
        path: str,
        *,
        interval: float = 0.2,
        size: int = BLOCK_SIZE,
        waiting: Waiting = contextlib.nullcontext,
    ):
        self.path = path
        self._interval = interval
        self._size = size
        self._waiting = waiting
        self._fd = -1
        self._offset = 0  # in the open file
        self._read = 0  # bytes of the stream
        self._segments: list[dict[str, Any]] = []  # of files, in order: where each began
        self._saved: dict[str, Any] | None = None  # the position to go on from
        self._is_behind = False  # between the file of that position and the named one

    def blocks(self, position: dict[str, Any] | None = None) -> Iterator[bytes]:
        """Iterator[bytes]: what comes, for ever; from a saved position on if there is one.

        Raises OSError if the file cannot be read (none of this name is waited for) and
        CheckpointError if the file of the position is gone, or if a file was compressed before it
        was read.
        """
        self._saved = position
        try:
            if position is not None:
                self._go_on(position)
            while True:
                if self._fd < 0 and not self._open(self.path):
                    self._sleep()
                    continue
                block = read_once(self._fd, self.path, self._size, self._waiting)
                if block and self._is_same_file():
                    yield self._took(block)
                elif not self._turn():
                    self._sleep()
        finally:
            self._close()

    def position(self, at: int) -> dict[str, Any]:
        """dict: file and offset of byte `at` of the stream, for JSON. `at` never goes back."""
        while len(self._segments) > 1 and self._segments[1]["start"] <= at:
            del self._segments[0]
        if not self._segments:
            return self._saved or {"at": at, "file": None}
        one = self._segments[0]
        offset = one["offset"] + at - one["start"]
        return {"at": at, "file": [one["device"], one["inode"]], "offset": offset, **one["head"]}

    def _open(self, path: str, offset: int = 0) -> bool:
        try:
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
        # Cut to nothing and then written to more than before, between two looks: only the first
        # bytes tell.
        head = self._segments[-1]["head"]
        return bool(_head(self._fd, head["size"]) == head)

    def _turn(self) -> bool:
        """At the end of what is there: whether another file, or the same anew, is open now."""
        status = os.fstat(self._fd)
        if status.st_size < self._offset or not self._is_same_file():
            os.lseek(self._fd, 0, os.SEEK_SET)
            self._begin(0)
            return True
        if self._named_inode() == _inode(status):
            self._is_behind = False
            return False
        # The writer may still have the old file open, and writes a last line to it.
        self._sleep()
        if os.fstat(self._fd).st_size > self._offset:
            return True
        return self._next_file()

    def _next_file(self) -> bool:
        """Open the file that came after the open one. bool: whether there is one."""
        status = os.fstat(self._fd)
        while True:
            try:
                path, inode = self._place_after(status)
                if inode is None or inode == _inode(status):
                    return False  # the new file is not there yet
                fd = os.open(path, _READ)
            except FileNotFoundError:
                continue  # rotated again in this moment
            with contextlib.ExitStack() as stack:
                stack.callback(os.close, fd)
                with contextlib.suppress(FileNotFoundError):
                    again = self._place_after(status)
                    # This is the file, and none has come in front of it meanwhile.
                    if _inode(os.fstat(fd)) == inode and again == (path, inode):
                        stack.pop_all()
                        self._close()
                        self._fd = fd
                        self._begin(0)
                        return True

    def _place_after(self, status: os.stat_result) -> tuple[str, tuple[int, int] | None]:
        """(path, device and inode) of the oldest file that is newer than that of `status`, which is
        the open one."""
        rotated = _rotated(self.path)
        places = [i for i, one in enumerate(rotated) if one.inode == _inode(status)]
        if places:
            later = rotated[places[0] + 1 :]
        else:  # deleted, or compressed
            later = [one for one in rotated if one.time >= status.st_mtime_ns]
        for one in later:
            if not (one.is_named_packed or _is_packed(one.path)):
                return one.path, one.inode
            # As long as the open file is there and plain, only older ones are compressed.
            if self._is_behind or not (places or self._is_copy(one.path)):
                raise CheckpointError(
                    f"{one.path} was rotated and compressed before it was read: unpack it first"
                )
        return self.path, self._named_inode()

    def _is_copy(self, path: str) -> bool:
        """bool: whether a compressed file begins as the open one does."""
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
            raise CheckpointError(f"{path} went away while it was looked for")
        found = {"size": position["size"], "sha256": position["sha256"]}
        size = os.fstat(self._fd).st_size
        if size < position["offset"] or _head(self._fd, position["size"]) != found:
            raise CheckpointError(
                f"{path} was cut or written anew since the checkpoint: what it had then is lost"
            )
        self._is_behind = True

    def _path_of(self, device: int, inode: int) -> str:
        """str: the path that the file of a checkpoint has now."""
        if self._named_inode() == (device, inode):
            return self.path
        for one in _siblings(self.path):
            if one.inode() == inode and one.is_file():
                return one.path
        raise CheckpointError(
            f"{self.path} was rotated since the checkpoint, and the file that was read then is "
            f"none of {self.path}.* or {self.path}-*: its rest is lost"
        )


class _Rotated(NamedTuple):
    """In the order of age: of files of one moment, the one with the highest number is the oldest,
    or the one with the earliest date."""

    time: int
    number: int
    suffix: str
    inode: tuple[int, int]
    path: str
    is_named_packed: bool


def _rotated(path: str) -> list[_Rotated]:
    """The files that `path` was before, oldest first."""
    found = []
    skipped = len(os.path.basename(path))
    siblings: list[os.DirEntry[str]] = []
    with contextlib.suppress(PermissionError):  # a folder that may be searched, but not listed
        siblings = _siblings(path)
    for one in siblings:
        name = _ROTATED.fullmatch(one.name, skipped)
        with contextlib.suppress(FileNotFoundError):  # rotated again in this moment
            if name and one.is_file():
                status = one.stat()
                number = -int(name[1]) if name[1].isdecimal() and len(name[1]) < _DATE else 0
                place = status.st_mtime_ns, number, name[1]
                found.append(_Rotated(*place, _inode(status), one.path, bool(name[2])))
    return sorted(found)


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _is_packed(path: str) -> bool:
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
