"""Where bytes go: standard output, or files that appear when they are complete.

A file is written under a hidden name in its folder. It gets its own name, or replaces the old file
of that name, by one `rename` after its bytes are on the disk, so that nobody ever sees a part.
Nothing here knows a format.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import os
import select
import stat
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol

from ..errors import CheckpointError
from .behind import Behind

_STDOUT = 1
_BLOCK = 1 << 18
_SYNC_EVERY = 1 << 25  # bytes


class Writable(Protocol):
    """A place for bytes. is_file: nothing is seen before it is complete, and `patch` works."""

    name: str
    is_file: bool

    def write(self, data: bytes | memoryview) -> None: ...
    def patch(self, offset: int, data: bytes) -> None: ...


class Output(Writable, Protocol):
    """One that is used in a `with`: leaving it without an exception completes it."""

    def __enter__(self) -> Output: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Pipe:
    """Standard output, a FIFO or a device: what is written is gone at once."""

    is_file = False

    def __init__(self, fd: int, name: str):
        self.fd = fd
        self.name = name

    def __enter__(self) -> Pipe:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.fd != _STDOUT:
            os.close(self.fd)

    def write(self, data: bytes | memoryview) -> None:
        """Write all of it. Raises OSError with the name of the output."""
        _write_all(self.fd, data, self.name)

    def patch(self, offset: int, data: bytes) -> None:
        raise io.UnsupportedOperation(f"{self.name} cannot be written out of order")


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
        size: int | None = None,
        behind: Behind | None = None,
        is_scratch: bool = False,
    ):
        """A new file, or with `size` the one that an earlier process left, cut to that size.

        is_resumable: the hidden name follows from `path`, so that another process finds it again.
        behind: the thread that writes; its owner closes it before this file. is_scratch: it will
        not be published. Raises OSError where no file can be made, or the old one may not be
        written, and CheckpointError if fewer than `size` bytes are there.
        """
        self.name = path
        self._behind = behind
        self._hash: Any = None
        self.is_scratch = is_scratch
        self._unsynced = 0  # bytes, of what the thread wrote
        self._final = os.path.realpath(path)
        self._part = _part_path(self._final) if is_resumable else _random_path(self._final)
        mode = None
        with contextlib.suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.stat(self._final).st_mode)
            if not os.access(self._final, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        if size is not None:
            self._fd = self._reopen(size)
            self.size = size
            return
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        flags |= os.O_TRUNC if is_resumable else os.O_EXCL
        with _named(path):
            self._fd = os.open(self._part, flags, 0o666)
            if mode is not None:
                with contextlib.suppress(OSError):
                    os.chmod(self._part, mode)
        self.size = 0

    def _reopen(self, size: int) -> int:
        try:
            fd = os.open(self._part, os.O_RDWR | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            raise CheckpointError(
                f"{self._part}, which holds the beginning of {self.name}, is gone"
            ) from None
        found = os.fstat(fd).st_size
        if found < size:
            os.close(fd)
            raise CheckpointError(
                f"{self._part}, which holds the beginning of {self.name}, has {found} bytes and "
                f"not the {size} that were saved"
            )
        with _named(self.name):
            os.ftruncate(fd, size)
            os.lseek(fd, size, os.SEEK_SET)
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
        _write_all(self._fd, data, self.name)
        if self._hash is not None:
            self._hash.update(data)
        self._unsynced += size
        if self._unsynced >= _SYNC_EVERY and self._behind is not None and not self.is_scratch:
            # At the end all would wait for it. Here the disk works while others encode.
            with _named(self.name):
                os.fsync(self._fd)
            self._unsynced = 0

    def wait(self) -> None:
        """Wait until what was written is in the file, if not on the disk."""
        if self._behind is not None:
            self._behind.wait()

    def begin_hash(self) -> None:
        """From here on `digest` is possible. Reads what the file has already."""
        found = hashlib.sha256()
        if self.size:  # hashlib's state cannot be saved
            for block in self.contents():
                found.update(block)
        self._hash = found

    def digest(self) -> str:
        """str: the SHA-256 of all that was written, in hexadecimal."""
        self.wait()
        digest: str = self._hash.hexdigest()
        return digest

    def patch(self, offset: int, data: bytes) -> None:
        """Write over what is at `offset`; no file with a digest."""
        self.wait()
        with _named(self.name):
            os.lseek(self._fd, offset, os.SEEK_SET)
            _write_all(self._fd, data, self.name)
            os.lseek(self._fd, 0, os.SEEK_END)

    def contents(self, block_size: int = _BLOCK) -> Iterator[bytes]:
        """Iterator[bytes]: what has been written, in blocks."""
        self.wait()
        with _named(self.name), open(self._part, "rb", buffering=0) as file:
            while block := file.read(block_size):
                yield block

    def sync(self) -> None:
        """Wait until what was written is on the disk."""
        self.wait()
        with _named(self.name):
            os.fsync(self._fd)

    def close(self) -> None:
        """Write no more; the file keeps its hidden name."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with _named(self.name):
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
        with _named(file.name):
            os.replace(file._part, file._final)
        folders[os.path.dirname(file._final)] = None
    for folder in folders:
        _sync_folder(folder)


def publish_left(path: str) -> None:
    """Publish the complete file that an earlier process may have left unpublished.

    Raises CheckpointError if there is neither that file nor one of its name.
    """
    final = os.path.realpath(path)
    part = _part_path(final)
    with _named(path):
        if os.path.exists(part):
            os.replace(part, final)
            _sync_folder(os.path.dirname(final))
        elif not os.path.exists(final):
            raise CheckpointError(f"{path} was complete, and is gone")


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


def check_output(path: str) -> bool:
    """bool: whether a file will be made or replaced there, not a FIFO or device written.

    Raises IsADirectoryError for a folder.
    """
    with contextlib.suppress(FileNotFoundError):
        kind = os.stat(path).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return stat.S_ISREG(kind)
    return True


def open_output(path: str) -> Output:
    """Output: "-" is standard output, a FIFO or device is written as it is, all else a NewFile.

    Raises OSError where nothing can be written; nothing is lost then.
    """
    if path == "-":
        return Pipe(_STDOUT, "standard output")
    if check_output(path):
        return NewFile(path)
    return Pipe(os.open(path, os.O_WRONLY), path)


def write_whole(path: str, data: bytes) -> None:
    """Make or replace a small file at once: its old content or the new one, whatever happens.

    A process that dies leaves at most one hidden file, which the next call or `remove_left` takes.
    """
    file = PartFile(path, is_resumable=True)
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
    # A digest, not the name: that may already have the 255 bytes that a name may have.
    folder, name = os.path.split(final)
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return os.path.join(folder, f".streamtok-{digest}.part")


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Name the output in every OSError: users know nothing of descriptors and part files."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def _write_all(fd: int, data: bytes | memoryview, name: str) -> None:
    # A pipe may take a part only; one that somebody made non-blocking may take nothing for now.
    rest = memoryview(data)
    with _named(name):
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
