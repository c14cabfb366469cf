"""Follows a growing file by its name, as `tail -F` does, from its first byte and without end.

When another file takes the name (rotation by rename), the old file is read to its end first, then
the files rotated in between, then the new file. When the file is truncated (copytruncate), the rest
of the old text is read from its copy first. All these texts are one stream of bytes. Between two
polls the process sleeps.

Rotated files are those named PATH.1, PATH-20240101 and the like, in the order of their modification
times. A file that was partly read is recognized by its contents, because names change and systems
reuse inodes. Either every byte is read exactly once, or a CheckpointError reports a gap: text that
was or may have been in the log, and is now in no file or only in a compressed one.
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
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import CheckpointError
from ...files import naming, shown
from .blocks import BLOCK_SIZE, Waiting, read_once

_SAMPLE = 1 << 12  # bytes at the start and before an offset, by which a file is recognized
_SECOND = 10**9  # ns
_ANEW = "with another output, the command starts with the text that exists now"
_LOOKS = 5  # attempts to find a file: names change while a folder is listed
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_DATE = 6  # digits of the shortest date; fewer digits are a number that grows with age
# Suffixes of rotated files. Other files beside it, such as app.log.lock, are not part of the log.
_ROTATED = re.compile(r"[.-](\d[\dTZ.:_-]*?|old|prev)(\.(?:gz|bgz|bz2|xz|zst|zstd|lz4|Z|zip))?")


class Mark(NamedTuple):
    """A position in a file, with data that identifies the file under any name.

    file: device and inode. head: digest of the first `head_size` bytes. tail: digest of up to
    _SAMPLE bytes before `offset`. size, time: size and modification time when last checked.
    """

    file: tuple[int, int]
    offset: int
    head_size: int
    head: str
    tail: str
    size: int
    time: int

    @property
    def tail_size(self) -> int:
        return min(self.offset, _SAMPLE)


@dataclass
class _Segment:
    """A part of the stream, from one file.

    start: the offset of the part in the stream. offset: its offset in the file. head: the first
    bytes of the file. file, size, time: as in `Mark`.
    """

    start: int
    offset: int
    head: bytes
    file: tuple[int, int]
    size: int
    time: int

    def reaches(self, at: int) -> bool:
        """Whether the file has text before byte `at` of the stream, by which it can be identified.

        The position before the first byte of a file belongs to the end of the previous file.
        """
        return self.start <= at and self.offset + at - self.start > 0


class Follower:
    """Reads a followed file. `position(n)` returns the file and the offset of the stream's byte n.

    The position is JSON: "at" (offset in the stream) and the fields of `Mark`. Before the first
    byte, "file" is null and "time" is a modification time: only newer files are read.
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
        """missing: called once with the path if the file does not exist yet."""
        self.path = path
        self._missing = missing
        self._interval = interval
        self._size = size
        self._waiting = waiting
        self._fd = -1
        self._offset = 0  # in the open file
        self._read = 0  # bytes of the stream
        self._recent = bytearray()  # the last bytes of the stream
        self._segments: list[_Segment] = []
        self._since = -1  # modification time; the first file is newer
        self._previous: _Previous | None = None  # the file that was read before the open one
        self._saved: dict[str, Any] = {}  # the position where the stream began

    def blocks(self, position: dict[str, Any] | None = None) -> Iterator[bytes]:
        """Yield blocks without end, from `position` or the first byte; yield b"" before each wait.

        Waits if the file does not exist. Raises OSError if it cannot be read, and CheckpointError
        for a gap.
        """
        try:
            with naming(self.path):
                with self._waiting():  # handle a signal that has already arrived
                    pass
                if position is None:
                    self._start()
                else:
                    self._go_on(position)
                yield b""
                while True:
                    if block := self._next_block():
                        yield self._record(block)
                    elif not self._switch():
                        yield b""
                        self._sleep()
        finally:
            self._close()
            self._close_previous()

    def position(self, at: int) -> dict[str, Any]:
        """The position of the stream's byte `at`, for JSON.

        The data for this byte must not have been released.
        """
        for one in reversed(self._segments):
            if one.reaches(at):
                return {"at": at, **self._mark(one, at)._asdict()}
        return self._saved

    def release(self, at: int) -> None:
        """Free the data that only positions before byte `at` of the stream need."""
        while len(self._segments) > 1 and self._segments[1].reaches(at):
            del self._segments[0]
        del self._recent[: max(0, len(self._recent) - (self._read - at) - _SAMPLE)]

    def _mark(self, one: _Segment, at: int) -> Mark:
        offset = one.offset + at - one.start
        end = at - (self._read - len(self._recent))
        tail = self._recent[max(0, end - min(offset, _SAMPLE)) : end]
        digests = len(one.head), _digest(one.head), _digest(tail)
        return Mark(one.file, offset, *digests, one.size, one.time)

    # The beginning

    def _start(self) -> None:
        """Begin with the named file; if it has no text yet, with the first file that has text."""
        self._since = max((one.time for one in _rotated(self.path)), default=-1)
        self._saved = {"at": 0, "file": None, "time": self._since}
        with contextlib.suppress(FileNotFoundError):
            check_regular(self.path)  # opening a pipe would wait for its writer
            fd = os.open(self.path, _READ)
            if head := os.pread(fd, _SAMPLE, 0):
                self._begin(_Opened(fd, head, b""), 0)
            else:
                os.close(fd)
            return
        self._missing(self.path)

    def _go_on(self, position: dict[str, Any]) -> None:
        """Open the file of a saved position at its offset."""
        self._saved, self._read = position, position["at"]
        if position["file"] is None:
            self._since = position["time"]
            return
        device, inode = position["file"]
        fields = {name: position[name] for name in Mark._fields[1:]}
        self._find(Mark((device, inode), **fields))

    # The open file

    def _begin(self, opened: _Opened, offset: int) -> None:
        """Continue with this file at this offset."""
        self._close()
        self._fd, head, tail = opened
        self._offset = offset
        if offset:
            self._recent[len(self._recent) - min(len(tail), len(self._recent)) :] = tail
        status = os.fstat(self._fd)
        where = _inode(status), status.st_size, status.st_mtime_ns
        self._segments.append(_Segment(self._read, offset, head, *where))

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _next_block(self) -> bytes:
        """Read the open file at its offset; b"" if there is no more text, or it was truncated."""
        if self._fd < 0:
            return b""
        block = read_once(self._fd, self.path, self._size, self._waiting)
        if block and not self._is_same():
            os.lseek(self._fd, self._offset, os.SEEK_SET)
            return b""
        return block

    def _record(self, block: bytes) -> bytes:
        self._read += len(block)
        self._recent += block
        one = self._segments[-1]
        if len(one.head) < _SAMPLE:
            known = len(one.head) - self._offset  # the head may reach further than the offset
            one.head += block[known : known + _SAMPLE - len(one.head)]
        self._offset += len(block)
        return block

    def _mark_now(self) -> Mark:
        return self._mark(self._segments[-1], self._read)

    def _is_same(self) -> bool:
        """Whether the open file still has the text that was read from it.

        If not, it was truncated, and perhaps written past our offset between two polls.
        """
        head = self._segments[-1].head
        tail = self._recent[-min(self._offset, _SAMPLE) :] if self._offset else b""
        start = self._offset - len(tail)
        return (
            os.pread(self._fd, len(head), 0) == head
            and os.pread(self._fd, len(tail), start) == tail
        )

    # The next file

    def _switch(self) -> bool:
        """Find the text after the open file's end; return False if there is none yet."""
        if self._fd >= 0:
            status = os.fstat(self._fd)
            if status.st_size < self._offset or not self._is_same():
                self._find(self._mark_now())
                return True
            one = self._segments[-1]
            one.size, one.time = status.st_size, status.st_mtime_ns
            if status.st_size > self._offset:
                return True
            self._check_previous()
            with contextlib.suppress(FileNotFoundError):  # no file has the name now
                if _inode(os.stat(self.path)) == _inode(status):
                    return False
        return self._open_next()

    def _open_next(self) -> bool:
        """Open the file that came after the open one; return False if none with text exists yet."""
        has_waited = self._fd < 0
        while True:
            files = self._files()
            later = self._later(files)
            if later is None:
                read = self._segments[-1].time
                if not any(
                    one.size and (one.path == self.path or one.time > read) for one in files
                ):
                    return False  # it has no successor yet
                self._find(self._mark_now())
                return True
            if not later:
                return False
            if not has_waited:
                # The writer may still have the old file open and append a last line to it.
                self._sleep()
                if os.fstat(self._fd).st_size > self._offset:
                    return True
                has_waited = True
                continue
            if self._open(later[0]):
                return True

    def _open(self, one: _Rotated) -> bool:
        """Begin to read a file; return False if it is no longer the next one."""
        try:
            fd = os.open(one.path, _READ)
        except FileNotFoundError:  # rotated again meanwhile
            return False
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, fd)
            again = self._later(self._files())
            if _inode(os.fstat(fd)) != one.inode or not again or again[0][3:5] != one[3:5]:
                return False
            if one.is_compressed:
                raise CheckpointError(
                    f"{shown(one.path)} was compressed before it was read: decompress it, and run "
                    "the same command"
                )
            if self._fd >= 0 and os.fstat(self._fd).st_size > self._offset:
                return True  # a late line of the old file must be read first
            stack.pop_all()
            if self._fd >= 0:
                self._close_previous()
                self._previous = _Previous(os.dup(self._fd), self._offset)
            # By its head, the file is recognized even if it is truncated before it is read.
            self._begin(_Opened(fd, os.pread(fd, _SAMPLE, 0), b""), 0)
        return True

    def _close_previous(self) -> None:
        previous, self._previous = self._previous, None
        if previous is not None:
            os.close(previous.fd)

    def _check_previous(self) -> None:
        """Raise CheckpointError if the previous file has grown; close it if it was removed."""
        if self._previous is None:
            return
        status = os.fstat(self._previous.fd)
        late = status.st_size - self._previous.offset
        if late > 0 or not status.st_nlink:
            self._close_previous()
        if late > 0:
            raise CheckpointError(
                f"{shown(self.path)}: {late:,} bytes were written to the file that had this name "
                f"before, after its byte {status.st_size - late:,} and after the new file had text"
                f"; {_ANEW}"
            )

    def _later(self, files: list[_Rotated]) -> list[_Rotated] | None:
        """The files with text after the open one; None if the open file is not in `files`."""
        since = self._since
        if self._fd >= 0:
            own = os.fstat(self._fd)
            at = [i for i, one in enumerate(files) if one.inode == _inode(own)]
            if at:
                return [one for one in files[at[0] + 1 :] if one.size]
            if not any(one.is_copy_of(own) for one in files):
                return None
            since = own.st_mtime_ns
        return [one for one in files if one.size and (one.time > since or one.path == self.path)]

    def _files(self) -> list[_Rotated]:
        """The files of the log: the rotated files, oldest first, and then the named file."""
        files = _rotated(self.path)
        with contextlib.suppress(FileNotFoundError):
            status = check_regular(self.path)
            fields = _inode(status), self.path, status.st_size, False
            files.append(_Rotated(status.st_mtime_ns, 0, "", *fields))
        return files

    def _sleep(self) -> None:
        with self._waiting():
            time.sleep(self._interval)

    # Finding a file by the text that was read from it

    def _find(self, mark: Mark) -> None:
        """Open the file that matches the mark.

        Raises CheckpointError if there is none, which means that there is a gap.
        """
        failed: list[str] = []
        for look in range(_LOOKS):
            if look:
                self._sleep()
            failed.clear()
            if opened := self._open_marked(mark, failed):
                self._begin(opened, mark.offset)
                return
        lost = max(0, mark.size - mark.offset)
        name = shown(self.path)
        known = f"at least {lost:,} bytes" if lost else "how many bytes is unknown"
        failed += [
            f"{shown(one.path)} is compressed: decompress it, and run the same command"
            for one in self._files()
            if one.is_compressed and one.time >= mark.time // _SECOND * _SECOND
        ]
        reasons = "".join(f"; {one}" for one in failed)
        raise CheckpointError(
            f"{name}: text after byte {mark.offset:,} of the file that was read is lost ({known}): "
            f"neither {name} nor a rotated file beside it, such as NAME.1 or NAME-20260101, has "
            f"the text before it{reasons}; {_ANEW}"
        )

    def _open_marked(self, mark: Mark, failed: list[str]) -> _Opened | None:
        """Open the file that matches the mark, or return None.

        failed: the list to which errors for unreadable files are added.
        """
        found: list[tuple[os.stat_result, _Opened]] = []
        for one in self._files():
            if one.is_compressed:
                continue
            try:
                opened = self._open_at(one.path, mark)
                if opened is not None:
                    found.append((os.fstat(opened.fd), opened))
            except FileNotFoundError:  # rotated again meanwhile
                pass
            except PermissionError as error:
                failed.append(f"{shown(one.path)}: {error.strerror}")
        # Copies match, too. If little was read, so do files with the same first lines.
        same = [(status, one) for status, one in found if _inode(status) == mark.file]
        later = [(status, one) for status, one in found if status.st_mtime_ns >= mark.time]
        chosen = next((one for _, one in same or later or found[-1:]), None)
        for _, opened in found:
            if opened is not chosen:
                os.close(opened.fd)
        return chosen

    def _open_at(self, path: str, mark: Mark) -> _Opened | None:
        """Open a file at the offset of the mark; return None if the file does not match."""
        with contextlib.ExitStack() as stack:
            fd = os.open(path, _READ)
            stack.callback(os.close, fd)
            head = os.pread(fd, mark.head_size, 0)
            tail = os.pread(fd, mark.tail_size, mark.offset - mark.tail_size)
            if (_digest(head), _digest(tail)) != (mark.head, mark.tail):
                return None
            os.lseek(fd, mark.offset, os.SEEK_SET)
            stack.pop_all()
            return _Opened(fd, head, tail)


class _Opened(NamedTuple):
    """An open file. head: its first bytes. tail: the bytes before its offset."""

    fd: int
    head: bytes
    tail: bytes


class _Previous(NamedTuple):
    """An open file that was read up to `offset`."""

    fd: int
    offset: int


class _Rotated(NamedTuple):
    """A file of the log. Sorts by age, oldest first.

    Among files with the same time, the highest number or the earliest date is the oldest.
    """

    time: int
    number: int
    suffix: str
    inode: tuple[int, int]
    path: str
    size: int
    is_compressed: bool  # by its name

    def is_copy_of(self, status: os.stat_result) -> bool:
        """Whether it may be a compressed copy of a file.

        Its time is then the same, or the same in whole seconds.
        """
        time = status.st_mtime_ns
        return self.is_compressed and self.time in (time, time // _SECOND * _SECOND)


def _rotated(path: str) -> list[_Rotated]:
    """The files that had the name `path` before, oldest first.

    While a file is being compressed, it exists twice; only the uncompressed file is listed.
    """
    found: dict[tuple[str, str], _Rotated] = {}
    # The log may be a link to a file that is rotated in another folder.
    for log in dict.fromkeys([os.path.abspath(path), os.path.realpath(path)]):
        for one in _siblings(log):
            name = _ROTATED.fullmatch(one.name, len(os.path.basename(log)))
            with contextlib.suppress(FileNotFoundError):  # rotated again meanwhile
                if name and one.is_file():
                    status = one.stat()
                    number = -int(name[1]) if name[1].isdecimal() and len(name[1]) < _DATE else 0
                    fields = status.st_mtime_ns, number, name[1], _inode(status), one.path
                    if not name[2] or (log, name[1]) not in found:
                        found[log, name[1]] = _Rotated(*fields, status.st_size, bool(name[2]))
    return sorted({one.inode: one for one in found.values()}.values())


def check_regular(path: str) -> os.stat_result:
    """The status of a regular file. Raises OSError if it does not exist or is not regular."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ESPIPE, "only a regular file can be followed", path)
    return status


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _siblings(path: str) -> list[os.DirEntry[str]]:
    """The files named `path` with a suffix; none if listing the folder is not permitted."""
    folder, name = os.path.split(path)
    with contextlib.suppress(PermissionError), os.scandir(folder) as entries:
        return [e for e in entries if e.name.startswith((f"{name}.", f"{name}-"))]
    return []


def _digest(data: bytes | bytearray) -> str:
    return hashlib.sha256(data).hexdigest()
