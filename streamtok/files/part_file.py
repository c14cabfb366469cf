"""Files that appear when they are complete.

A file is written under a hidden name in its folder. It gets its own name, or replaces the old file
of that name, by one `rename` after its bytes are on the disk, so that nobody ever sees a part.
A part that another process goes on with is compared with the digest of what was saved. Nothing here
knows a format.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import select
import stat
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TypedDict

from ..errors import CheckpointError
from .writer_thread import Behind

_BLOCK = 1 << 18
_SYNC_EVERY = 1 << 25  # bytes


class Saved(TypedDict):
    """What a checkpoint keeps of a file: its bytes, and the SHA-256 of those that are hashed."""

    size: int
    sha256: str

class PartFile:
    """A file on its way: written under a hidden name, `publish` gives it its own.

    `size` is how many bytes it has. The mode of a file that will be replaced is kept, and a
    symbolic link is followed. Every method raises OSError with the name that the user knows. With a
    thread behind, `write` may raise what an earlier one met; all others wait for the thread first.
    """

    is_file = True

    def __init__(
        self,
        path: str,
        *,
        is_resumable: bool = False,
        saved: Saved | None = None,
        hashed_from: int | None = None,
        behind: Behind | None = None,
        is_scratch: bool = False,
    ):
        """A new file, or with `saved` the one that an earlier process left, cut to that size.

        is_resumable: the hidden name follows from the real path, so that another process finds it
        again. hashed_from: what is written from this offset on is hashed, for `digest`; only what
        is before it can be patched then. behind: the thread that writes; its owner closes it before
        this file. is_scratch: it will not be published. Raises OSError where no file can be made,
        or the old one may not be written, and CheckpointError if what was saved is not there.
        """
        self.name = path
        self._behind = behind
        self._hash = None if hashed_from is None else _Hash(hashed_from)
        self.is_scratch = is_scratch
        self._unsynced = 0  # bytes, of what the thread wrote
        self._final = os.path.realpath(path)
        self._part = _part_path(self._final) if is_resumable else _random_path(self._final)
        mode = None
        with contextlib.suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.stat(self._final).st_mode)
            if not os.access(self._final, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        if saved is not None:
            self._fd = self._reopen(saved)
            self.size = saved["size"]
            return
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        flags |= os.O_TRUNC if is_resumable else os.O_EXCL
        with named(path):
            self._fd = os.open(self._part, flags, 0o666)
            if mode is not None:
                with contextlib.suppress(OSError):
                    os.chmod(self._part, mode)
        self.size = 0

    def _reopen(self, saved: Saved) -> int:
        size = saved["size"]
        try:
            fd = os.open(self._part, os.O_RDWR | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            raise CheckpointError(
                f"{self._part}, which holds the beginning of {self.name}, is gone"
            ) from None
        try:
            found = os.fstat(fd).st_size
            if found < size:
                raise CheckpointError(
                    f"{self._part}, which holds the beginning of {self.name}, has {found} bytes "
                    f"and not the {size} that were saved"
                )
            if self._hash is not None:
                for block in _blocks_of(self._part, self.name, size):
                    self._hash.update(block)
                if self._hash.hexdigest() != saved["sha256"]:
                    raise CheckpointError(
                        f"{self._part} should hold the beginning of {self.name}, and holds other "
                        "bytes than those that were saved"
                    )
            with named(self.name):
                os.ftruncate(fd, size)
                os.lseek(fd, size, os.SEEK_SET)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def write(self, data: bytes | memoryview) -> None:
        """Write all of it at the end. The data may not change any more."""
        size = memoryview(data).nbytes
        self.size += size
        if self._behind is None:
            self._append(data, size)
        else:
            self._behind.do(functools.partial(self._append, data, size), size)

    def _append(self, data: bytes | memoryview, size: int) -> None:
        write_all(self._fd, data, self.name)
        if self._hash is not None:
            self._hash.update(data)
        self._unsynced += size
        if self._unsynced >= _SYNC_EVERY and self._behind is not None and not self.is_scratch:
            # At the end all would wait for it. Here the disk works while others encode.
            with named(self.name):
                os.fsync(self._fd)
            self._unsynced = 0

    def wait(self) -> None:
        """Wait until what was written is in the file, if not on the disk."""
        if self._behind is not None:
            self._behind.wait()

    def digest(self) -> str:
        """str: the SHA-256 of all that was written behind `hashed_from`, in hexadecimal."""
        self.wait()
        assert self._hash is not None
        return self._hash.hexdigest()

    def saved(self) -> Saved:
        """Saved: what a checkpoint keeps of the file, after `sync`."""
        return {"size": self.size, "sha256": self.digest()}

    def patch(self, offset: int, data: bytes) -> None:
        """Write over what is at `offset`, before what is hashed."""
        assert self._hash is None or offset + len(data) <= self._hash.start
        self.wait()
        with named(self.name):
            os.lseek(self._fd, offset, os.SEEK_SET)
            write_all(self._fd, data, self.name)
            os.lseek(self._fd, 0, os.SEEK_END)

    def contents(self, block_size: int = _BLOCK) -> Iterator[bytes]:
        """Iterator[bytes]: what has been written, in blocks."""
        self.wait()
        yield from _blocks_of(self._part, self.name, self.size, block_size)

    def sync(self) -> None:
        """Wait until what was written is on the disk."""
        self.wait()
        with named(self.name):
            os.fsync(self._fd)

    def close(self) -> None:
        """Write no more; the file keeps its hidden name."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with named(self.name):
                os.close(fd)

    def publish(self) -> None:
        """Give the closed file its name. Costs an fsync of the folder."""
        publish_together([self])

    def discard(self) -> None:
        """Remove the file, published or not begun: then there is nothing to do."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with contextlib.suppress(OSError):
                os.close(fd)
        with contextlib.suppress(OSError):
            os.remove(self._part)


def publish_together(files: Sequence[PartFile]) -> None:
    """`publish` each, in order, for one fsync of their folder."""
    folders: dict[str, None] = {}
    for file in files:
        with named(file.name):
            os.replace(file._part, file._final)
        folders[os.path.dirname(file._final)] = None
    for folder in folders:
        _sync_folder(folder)


def publish_left(path: str, saved: Saved, hashed_from: int = 0) -> None:
    """Publish the complete file that an earlier process may have left unpublished.

    Raises CheckpointError if neither that file nor the one of its name is the one that was saved.
    """
    final = os.path.realpath(path)
    part = _part_path(final)
    with named(path):
        if _is_saved(part, path, saved, hashed_from):
            os.replace(part, final)
            _sync_folder(os.path.dirname(final))
        elif not _is_saved(final, path, saved, hashed_from):
            is_there = os.path.exists(part) or os.path.exists(final)
            what = "is not the file that was saved" if is_there else "is gone"
            raise CheckpointError(f"{path} was complete, and {what}")


def _is_saved(path: str, name: str, saved: Saved, hashed_from: int) -> bool:
    try:
        if os.stat(path).st_size != saved["size"]:
            return False
    except FileNotFoundError:
        return False
    found = _Hash(hashed_from)
    for block in _blocks_of(path, name, saved["size"]):
        found.update(block)
    return found.hexdigest() == saved["sha256"]


def remove_left(path: str) -> None:
    """Remove the unpublished file that an earlier process may have left."""
    with contextlib.suppress(OSError):
        os.remove(_part_path(os.path.realpath(path)))


class NewFile(PartFile):
    """A PartFile as a context: published at its end, removed on any exception."""

    def __init__(self, path: str):
        """Raises OSError where no file can be made, or the old one may not be written."""
        super().__init__(path)

    def __enter__(self) -> NewFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_complete = False
        try:
            if kind is None:
                self.sync()
                self.close()
                self.publish()
                is_complete = True
        finally:
            if not is_complete:
                self.discard()

def write_whole(
    path: str | os.PathLike[str], data: bytes, *, is_resumable: bool = False
) -> None:
    """Make or replace a small file at once: its old content or the new one, whatever happens.

    A symbolic link is followed, the mode of an old file is kept, and its folder is synced. Raises
    OSError. is_resumable: the caller is the only writer of this file. A process that dies then
    leaves at most one hidden file, which the next call or `remove_left` takes.
    """
    file = PartFile(os.fspath(path), is_resumable=is_resumable)
    try:
        file.write(data)
        file.sync()
        file.close()
        file.publish()
    except BaseException:
        file.discard()
        raise

def _random_path(final: str) -> str:
    return os.path.join(os.path.dirname(final), f".streamtok-{os.urandom(8).hex()}.part")


def _part_path(final: str) -> str:
    return hidden_path(final, "part")


def hidden_path(final: str, suffix: str) -> str:
    """str: the hidden file that goes with the output of this real path."""
    # A digest, not the name: that may already have the 255 bytes that a name may have.
    folder, name = os.path.split(final)
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return os.path.join(folder, f".streamtok-{digest}.{suffix}")


class _Hash:
    """SHA-256 of what is written from an offset on."""

    def __init__(self, start: int):
        self.start = start
        self._before = start  # bytes that come before it
        self._found = hashlib.sha256()

    def update(self, data: bytes | memoryview) -> None:
        if self._before:
            view = memoryview(data).cast("B")
            skipped = min(self._before, len(view))
            self._before -= skipped
            data = view[skipped:]
        self._found.update(data)

    def hexdigest(self) -> str:
        return self._found.hexdigest()


def _blocks_of(path: str, name: str, size: int, block_size: int = _BLOCK) -> Iterator[bytes]:
    """Iterator[bytes]: the first `size` bytes of a file, in blocks."""
    with named(name), open(path, "rb", buffering=0) as file:
        while size > 0 and (block := file.read(min(block_size, size))):
            size -= len(block)
            yield block

@contextlib.contextmanager
def named(path: str) -> Iterator[None]:
    """Name the output in every OSError: users know nothing of descriptors and part files."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error

def write_all(fd: int, data: bytes | memoryview, name: str) -> None:
    # A pipe may take a part only; one that somebody made non-blocking may take nothing for now.
    rest = memoryview(data)
    with named(name):
        while rest:
            try:
                rest = rest[os.write(fd, rest) :]
            except BlockingIOError:
                select.select([], [fd], [])


def _sync_folder(folder: str) -> None:
    # The file is there; a file system that cannot sync folders takes nothing from that.
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
