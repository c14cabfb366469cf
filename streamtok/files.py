"""Files that appear only once complete, files that only streamtok makes, errors that name files."""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import hashlib
import inspect
import os
import select
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from .errors import CheckpointError
from .threads import WriterThread

if TYPE_CHECKING:
    from json import JSONDecodeError


# Messages about files: system errors that name them, printable names, reasons for bad JSON.


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Give `name` to an OSError that names no file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from error


def is_folder(name: str) -> IsADirectoryError:
    """The error for an output that is a folder."""
    return IsADirectoryError(errno.EISDIR, "is a folder; give a file name", name)


def json_reason(error: JSONDecodeError) -> str:
    """Why a text is not JSON, for a message that continues with the position.

    Some of Python's reasons already lead up to it, such as "Unterminated string starting at".
    """
    if "BOM" in error.msg:
        return "unexpected byte order mark"
    return error.msg.removesuffix(" at").rstrip(": ")


def shown(name: str) -> str:
    """The file name as one printable line, whatever bytes it has."""
    return name if name.isprintable() else ascii(name)


def printable(text: str) -> str:
    """The text with escapes for unprintable characters other than newlines and tabs."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text
    )


# Opening the files that only streamtok makes: hidden parts, locks, checkpoints, cache entries.
#
# Their names can be guessed, so another user may put something there first. Only a regular file of
# this user without other hard links is opened, written to or removed: a link may lead to another
# user's file, and opening a FIFO waits forever.

OWN_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_ATTEMPTS = 3  # another process of this user may create and remove the same file
_MOST_LINKS = 40  # as in Linux
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class ForeignFileError(PermissionError):
    """Something that streamtok did not make is at the path of one of its own files."""

    def __init__(self, path: str, why: str):
        what = f"{why}, not a file that streamtok made for this user: remove it or move it away"
        super().__init__(errno.EPERM, what, path)


def why_foreign(status: os.stat_result, user: int | None) -> str | None:
    """Why the file with this status is not the user's own, or None. user: None if unknown."""
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO"}
        return f"is {kinds.get(kind, 'a device or socket')}"
    if status.st_nlink > 1:
        return "has another name as well (a hard link)"
    if user is not None and status.st_uid != user:
        return "belongs to another user"
    return None


def is_private(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user, and no other user can write to it."""
    if not hasattr(os, "geteuid"):
        return True  # not POSIX: the folder's access rights decide
    return status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS


def open_own(path: str, flags: int) -> int:
    """Open an existing file of ours; return its descriptor.

    Raises OSError: a FileNotFoundError if there is none, a ForeignFileError if it is not ours.
    """
    try:
        fd = os.open(path, flags | OWN_FLAGS)
    except FileNotFoundError:
        raise
    except OSError:
        _check(os.lstat(path), path)  # clearer than "too many levels of symbolic links"
        raise
    try:
        check_opened(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def create_own(path: str, flags: int, mode: int) -> int:
    """Create a file and return its descriptor. An old file of ours is removed first.

    Raises OSError: a ForeignFileError if something else is at its path.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return os.open(path, flags | os.O_CREAT | os.O_EXCL | OWN_FLAGS, mode)
        except FileExistsError:
            remove_own(path)
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def remove_own(path: str) -> None:
    """Remove a file of ours, if it exists. Raises OSError: a ForeignFileError if it is not ours."""
    with contextlib.suppress(FileNotFoundError):
        _check(os.lstat(path), path)
        os.remove(path)


def check_opened(fd: int, path: str) -> None:
    """Raise ForeignFileError unless the file that was opened as `path` is ours."""
    _check(os.fstat(fd), path)


def check_own(path: str) -> None:
    """Raise ForeignFileError if there is something at `path` that is not ours."""
    with contextlib.suppress(FileNotFoundError):
        _check(os.lstat(path), path)


def open_regular(path: str, *, follow: bool = True) -> int:
    """Open a regular file of any user for reading; return its descriptor.

    follow: whether to follow a symbolic link. Raises OSError, even for a file that can be opened
    but is not regular: reading a FIFO could wait forever.
    """
    flags = OWN_FLAGS & ~getattr(os, "O_NOFOLLOW", 0) if follow else OWN_FLAGS
    fd = os.open(path, os.O_RDONLY | flags)
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind):
        return fd
    os.close(fd)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "not a regular file", path)


def follow_links(path: str) -> str:
    """The real path of an output, which may be a symbolic link.

    Raises ForeignFileError for a link that neither this user nor the owner of its folder made: in a
    folder such as /tmp, it would let another user choose which file is replaced.
    """
    link = path
    for _ in range(_MOST_LINKS):
        try:
            status = os.lstat(link)
        except OSError:
            break
        if not stat.S_ISLNK(status.st_mode):
            break
        folder = os.path.dirname(link)
        if hasattr(os, "geteuid"):
            trusted = os.geteuid(), os.stat(folder or os.curdir).st_uid
            if status.st_uid not in trusted:
                raise ForeignFileError(link, "is a symbolic link of another user")
        link = os.path.join(folder, os.readlink(link))
    return os.path.realpath(path)


def _check(status: os.stat_result, path: str) -> None:
    user = os.geteuid() if hasattr(os, "geteuid") else None
    if user is not None and status.st_uid != user:
        user = _user_there(os.path.dirname(path))
    if (why := why_foreign(status, user)) is not None:
        raise ForeignFileError(path, why)


def _user_there(folder: str) -> int:
    """The owner of files that this process creates in a folder: a network disk may map users."""
    path = os.path.join(folder, f".streamtok-{os.urandom(8).hex()}.owner")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN_FLAGS, 0o600)
    except OSError:  # nothing can be created there
        return os.geteuid()
    try:
        return os.fstat(fd).st_uid
    finally:
        os.close(fd)
        os.remove(path)


# Files that appear only once they are complete.
#
# A file is written under a hidden name in its folder. After its bytes are on the disk, one `rename`
# gives it its final name and replaces any old file, so an incomplete file is never visible. Another
# process can cut a hidden file back to a known length and continue. Digests are taken of
# consecutive pieces, so that process has to read only the last piece. This module does not know any
# file format.

_HIDDEN = ".streamtok-"  # hidden names begin with this
_BLOCK = 1 << 18
_TOGETHER = 1 << 25  # bytes per request to the system to write to the disk

# The hidden files that no other process could continue. Ctrl-C may come after a file is created and
# before a caller can remove it, so the files left here are removed at exit.
_unpublished: set[str] = set()


Piece: TypeAlias = tuple[int, str]
"""A number of bytes, and their SHA-256 in hexadecimal."""


class PartFile:
    """A file written under a hidden name until `publish` gives it its final name.

    As a context manager it is published on success, and removed on any exception. `size` is its
    length in bytes. The mode of a replaced file is kept, and a symbolic link is followed. Every
    method raises OSError with the name that the user gave. With a writer thread, `write` may raise
    the error of an earlier write; the other methods wait for the thread first. `target` is its
    final path; `pieces` are the digests of the pieces that `end_piece` has ended.
    """

    is_file = True

    def __init__(
        self,
        path: str,
        *,
        is_resumable: bool = False,
        goes_on: bool = False,
        hashed_from: int | None = None,
        writer: WriterThread | None = None,
        is_scratch: bool = False,
    ):
        """Create a new file; goes_on: open the hidden one of an earlier process instead, for
        `cut_back`.

        is_resumable: derive the hidden name from the real path, so that another process finds the
        file again. hashed_from: `pieces` begin at this offset, and only bytes before it can be
        patched. writer: the thread that writes; its owner closes it before this file. is_scratch:
        the file will not be published. Raises OSError if the file cannot be created or the old one
        is not writable, and CheckpointError if there is no hidden file to continue.
        """
        self.name = self.target = path
        self._writer = writer
        self.hashed_from = hashed_from
        self.pieces: list[Piece] = []
        self._hash = hashlib.sha256()
        self._in_piece = 0  # bytes in the open piece
        self.is_scratch = is_scratch
        self._written = self._asked = 0  # bytes in the file; on their way to the disk
        self._final = follow_links(path)
        self._part = _part_path(self._final) if is_resumable else _random_path(self._final)
        mode = None
        with contextlib.suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.stat(self._final).st_mode)
            if not os.access(self._final, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        self.size = 0
        if goes_on:
            self._fd = self._reopen()
            return
        if not is_resumable:
            _unpublished.add(self._part)
        with named(path):
            try:
                self._fd = create_own(self._part, os.O_RDWR, 0o666)
            except OSError:
                _unpublished.discard(self._part)
                raise
            if mode is not None:
                with contextlib.suppress(OSError):
                    os.chmod(self._fd if os.chmod in os.supports_fd else self._part, mode)

    def _reopen(self) -> int:
        try:
            return open_own(self._part, os.O_RDWR)
        except ForeignFileError as error:
            raise CheckpointError(
                f"{self._part} {error.strerror}: the checkpoint describes the beginning of "
                f"{self.name} there"
            ) from None
        except FileNotFoundError:
            raise CheckpointError(
                f"{self._part} is missing: it held the beginning of {self.name}"
            ) from None

    def cut_back(self, size: int, pieces: Sequence[Piece]) -> None:
        """Cut the file to `size` bytes. pieces: those that are complete in these bytes.

        Reads the last piece and everything after it. Raises CheckpointError if the file is too
        short or the piece has changed.
        """
        self.wait()
        with named(self.name):
            found = os.fstat(self._fd).st_size
        if found < size:
            raise CheckpointError(
                f"{self._part} has {found} bytes, but the checkpoint saved {size}: it held "
                f"the beginning of {self.name}"
            )
        self.pieces, self._hash, self._in_piece = list(pieces), hashlib.sha256(), 0
        with named(self.name):
            if self.hashed_from is not None and size > self.hashed_from:
                begin = self.hashed_from + sum(length for length, _ in pieces)
                if pieces:
                    self._check_last(begin, *pieces[-1])
                os.lseek(self._fd, begin, os.SEEK_SET)
                while block := os.read(self._fd, min(_BLOCK, size - begin - self._in_piece)):
                    self._hash.update(block)
                    self._in_piece += len(block)
            os.ftruncate(self._fd, size)
            os.lseek(self._fd, size, os.SEEK_SET)
        self.size = self._written = self._asked = size

    def _check_last(self, stop: int, length: int, sha256: str) -> None:
        os.lseek(self._fd, stop - length, os.SEEK_SET)
        digest, left = hashlib.sha256(), length
        while left and (block := os.read(self._fd, min(_BLOCK, left))):
            digest.update(block)
            left -= len(block)
        if digest.hexdigest() != sha256:
            raise CheckpointError(
                f"{self._part} differs from the bytes that the checkpoint saved: it held "
                f"the beginning of {self.name}"
            )

    def write(self, data: bytes | memoryview) -> None:
        """Append all of `data`, which must not change afterwards: the thread may write it later."""
        size = memoryview(data).nbytes
        self.size += size
        if self._writer is None:
            self._append(data, size)
        else:
            self._writer.submit(functools.partial(self._append, data, size), size)

    def _append(self, data: bytes | memoryview, size: int) -> None:
        write_all(self._fd, data, self.name)
        if self.hashed_from is not None:
            view = memoryview(data).cast("B")
            skipped = min(max(self.hashed_from - self._written, 0), size)
            self._hash.update(view[skipped:] if skipped else view)
            self._in_piece += size - skipped
        self._written += size
        waiting = self._written - self._asked
        if waiting >= _TOGETHER and not self.is_scratch:
            # The disk works while the caller encodes; otherwise the caller would wait at the end.
            _begin_write_back(self._fd, self._asked, waiting)
            self._asked = self._written

    def wait(self) -> None:
        """Wait until all writes are in the file, though perhaps not on the disk."""
        if self._writer is not None:
            self._writer.wait()

    def end_piece(self) -> None:
        """End a piece here. The next one begins with the next byte; empty pieces are skipped."""
        if self.hashed_from is None:
            return
        if self._writer is None:
            self._end_piece()
        else:
            self._writer.submit(self._end_piece, 1)

    def _end_piece(self) -> None:
        if self._in_piece:
            self.pieces.append((self._in_piece, self._hash.hexdigest()))
            self._hash, self._in_piece = hashlib.sha256(), 0

    def patch(self, data: bytes) -> None:
        """Overwrite the first bytes, those before `hashed_from`. They become the first piece."""
        assert self.hashed_from in (None, len(data))
        self.wait()
        with named(self.name):
            os.lseek(self._fd, 0, os.SEEK_SET)
            write_all(self._fd, data, self.name)
            os.lseek(self._fd, 0, os.SEEK_END)
        self.pieces.insert(0, (len(data), hashlib.sha256(data).hexdigest()))

    def reopened(self) -> BinaryIO:
        """All bytes written so far, as a file for reading."""
        self.wait()
        with named(self.name):
            return open(open_regular(self._part, follow=False), "rb")

    def contents(self, block_size: int = _BLOCK, start: int = 0) -> Iterator[bytes]:
        """All bytes written so far from `start` on, in blocks of at most `block_size`.

        Bytes that are written meanwhile are not included.
        """
        stop = self.size
        with self.reopened() as file:
            file.seek(start)
            while start < stop and (block := file.read(min(block_size, stop - start))):
                start += len(block)
                yield block

    def sync(self) -> None:
        """Wait until all writes are on the disk. Costs an fsync."""
        self.wait()
        with named(self.name):
            os.fsync(self._fd)

    def close(self) -> None:
        """Close the file. It keeps its hidden name."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with named(self.name):
                os.close(fd)

    def publish(self) -> None:
        """Give the closed file its final name. Costs an fsync of the folder."""
        publish_together([self])

    def _rename(self) -> None:
        with named(self.name):
            os.replace(self._part, self._final)
        _unpublished.discard(self._part)

    def discard(self) -> None:
        """Close and remove the hidden file. Does nothing after `publish`. Raises nothing."""
        with contextlib.suppress(OSError):
            self.close()
        with contextlib.suppress(OSError):
            os.remove(self._part)
        _unpublished.discard(self._part)

    def __enter__(self) -> PartFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Publish the file, or remove it after an exception."""
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


def publish_together(files: Sequence[PartFile]) -> None:
    """`publish` each file, in order. Costs one fsync for each folder."""
    for file in files:
        file._rename()
    for folder in dict.fromkeys(os.path.dirname(file._final) for file in files):
        sync_folder(folder)


def publish_left(path: str, size: int | None = None) -> None:
    """Publish a complete file that an earlier process left under its hidden name, if there is one.

    size: of the complete file. Raises CheckpointError if neither the hidden nor the final file has
    this size.
    """
    final = os.path.realpath(path)
    part = _part_path(final)
    with named(path):
        if _is_saved(part, size):
            os.replace(part, final)
            sync_folder(os.path.dirname(final))
        elif size is not None and not _is_saved(final, size):
            exists = os.path.exists(part) or os.path.exists(final)
            what = "has changed since" if exists else "is now missing"
            raise CheckpointError(f"{path} was complete at the checkpoint and {what}")


def _is_saved(path: str, size: int | None) -> bool:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and size in (None, status.st_size)


def is_left(path: str) -> bool:
    """Whether an earlier process has left the hidden file of an output."""
    return os.path.lexists(_part_path(os.path.realpath(path)))


def remove_left(path: str) -> None:
    """Remove the hidden file that an earlier process may have left."""
    with contextlib.suppress(OSError):
        remove_own(_part_path(os.path.realpath(path)))


def write_whole(path: str | os.PathLike[str], data: bytes, *, is_resumable: bool = False) -> None:
    """Create or replace a small file atomically: a crash leaves the old content or the new one.

    A symbolic link is followed, the mode of an old file is kept, and the folder is synced. Raises
    OSError. is_resumable: the caller is the only writer of this file; a process that dies then
    leaves at most one hidden file, which the next call or `remove_left` removes.
    """
    with PartFile(os.fspath(path), is_resumable=is_resumable) as file:
        file.write(data)


@atexit.register
def _remove_unpublished() -> None:
    for path in _unpublished:
        with contextlib.suppress(OSError):
            os.remove(path)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unpublished.clear)  # they are the parent's


def _random_path(final: str) -> str:
    return os.path.join(os.path.dirname(final), f"{_HIDDEN}{os.urandom(8).hex()}.part")


def _part_path(final: str) -> str:
    return hidden_path(final, "part")


def hidden_path(final: str, suffix: str) -> str:
    """The path of the hidden file that belongs to the output at the real path `final`."""
    # A digest of the name: the name itself may already have the maximum of 255 bytes.
    folder, name = os.path.split(final)
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return os.path.join(folder, f"{_HIDDEN}{digest}.{suffix}")


def is_hidden(name: str) -> bool:
    """Whether this is the name of one of our hidden files."""
    return name.startswith(_HIDDEN)


@contextlib.contextmanager
def named(path: str) -> Iterator[None]:
    """Put `path` into every OSError, since users do not know descriptors and hidden files."""
    try:
        yield
    except ForeignFileError:  # it names the file already
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), path) from error


def write_all(fd: int, data: bytes | memoryview, name: str) -> None:
    """Write all of `data`. Raises OSError with `name`."""
    # A pipe may accept only a part of the data, and a non-blocking one nothing at the moment.
    rest = memoryview(data)
    with named(name):
        while rest:
            try:
                rest = rest[os.write(fd, rest) :]
            except BlockingIOError:
                select.select([], [fd], [])


def _begin_write_back(fd: int, at: int, size: int) -> None:
    """Ask the system to write part of a file to the disk, without waiting for it."""
    # Linux begins to write pages that it is told to drop. Other systems may wait until the fsync.
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(fd, at, size, os.POSIX_FADV_DONTNEED)


def sync_folder(folder: str) -> None:
    # Some file systems cannot sync folders. The file is still complete.
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


# Reading chunks from iterables, files and stream readers.

CHUNK_SIZE = 1 << 16


def read_chunks(source: Any) -> Iterator[Any]:
    """Iterator: chunks of a file object (what it has, up to 64 KiB at a time), or of an iterable.

    A file is read in chunks rather than in lines: the ids are the same, and a line may be long.
    """
    read = getattr(source, "read1", None) or getattr(source, "read", None)
    if read is None:
        yield from source
        return
    while True:
        chunk = read(CHUNK_SIZE)
        if chunk is None:  # a non-blocking raw file that has no data yet
            select.select([source], [], [])
        elif not len(chunk):
            return
        else:
            yield chunk


async def aread_chunks(source: Any) -> AsyncIterator[Any]:
    """AsyncIterator: chunks of an `asyncio.StreamReader` or another object with a coroutine `read`,
    of an asynchronous iterable, or of anything that `read_chunks` accepts.
    """
    read = getattr(source, "read", None)
    if read is not None and inspect.iscoroutinefunction(read):
        while chunk := await read(CHUNK_SIZE):
            yield chunk
    elif hasattr(source, "__aiter__"):
        async for chunk in source:
            yield chunk
    else:
        for chunk in read_chunks(source):
            yield chunk
