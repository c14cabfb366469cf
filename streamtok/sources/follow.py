"""A file that others write to, followed as `tail -F` does: by name, from its first byte, for ever.

When the name gets another file (rotation by rename), the old one is read to its end first; when the
file gets shorter or begins otherwise (copytruncate), it is read from its beginning. All of them are
one stream of bytes. What is written between our last look and a truncation is lost, as for every
reader of such logs. Between two looks the process sleeps.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from typing import Any

from ..errors import CheckpointError
from .blocks import BLOCK_SIZE, Waiting, read_once
from .compression import detect

_HEAD = 256  # bytes that tell a file from another one with the same inode


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

    def blocks(self, position: dict[str, Any] | None = None) -> Iterator[bytes]:
        """Iterator[bytes]: what comes, for ever; from a saved position on if there is one.

        Raises OSError if the file cannot be read (none of this name is waited for) and
        CheckpointError if the file of the position is gone.
        """
        self._saved = position
        try:
            if position is not None:
                yield from self._catch_up(position)
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
            self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
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
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            return False
        if (named.st_dev, named.st_ino) == (status.st_dev, status.st_ino):
            return False
        # The writer may still have the old file open, and writes a last line to it.
        self._sleep()
        if os.fstat(self._fd).st_size > self._offset:
            return True
        self._close()
        return self._open(self.path)

    def _sleep(self) -> None:
        with self._waiting():
            time.sleep(self._interval)

    def _catch_up(self, position: dict[str, Any]) -> Iterator[bytes]:
        """What the saved file and those after it have left; then the named one is open."""
        self._read = position["at"]
        if position["file"] is None:
            return
        device, inode = position["file"]
        for path in self._in_order(device, inode):
            is_saved = not self._segments
            if not self._open(path, position["offset"] if is_saved else 0):
                raise CheckpointError(f"{path} went away while it was looked for")
            if is_saved:
                found = {"size": position["size"], "sha256": position["sha256"]}
                if (
                    os.fstat(self._fd).st_size < position["offset"]
                    or _head(self._fd, position["size"]) != found
                ):
                    raise CheckpointError(
                        f"{path} was cut or written anew since the checkpoint: what it had then "
                        "is lost"
                    )
            if path == self.path:
                return
            if not is_saved and detect(os.pread(self._fd, 10, 0)) is not None:
                raise CheckpointError(
                    f"{path} was rotated and compressed since the checkpoint: unpack it first"
                )
            while block := read_once(self._fd, path, self._size, self._waiting):
                yield self._took(block)
            self._close()

    def _in_order(self, device: int, inode: int) -> list[str]:
        """The file of the checkpoint and those that came after it, the named one last."""
        status = None
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(self.path)
        if status is not None and (status.st_dev, status.st_ino) == (device, inode):
            return [self.path]
        rotated = [
            (one.stat().st_mtime_ns, one.path, one.stat().st_ino)
            for one in _siblings(self.path)
            if one.is_file()
        ]
        rotated.sort()
        for i, (_, _, found) in enumerate(rotated):
            if found == inode:
                names = [path for _, path, _ in rotated[i:]]
                return [*names, self.path] if status is not None else names
        raise CheckpointError(
            f"{self.path} was rotated since the checkpoint, and the file that was read then is "
            f"none of {self.path}.* or {self.path}-*: its rest is lost"
        )


def _siblings(path: str) -> list[os.DirEntry[str]]:
    folder, name = os.path.split(os.path.abspath(path))
    with os.scandir(folder) as entries:
        return [e for e in entries if e.name.startswith((f"{name}.", f"{name}-"))]


def _head(fd: int, size: int) -> dict[str, Any]:
    data = os.pread(fd, min(size, _HEAD), 0)
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
