"""Opens the files that only streamtok makes: hidden parts, locks, checkpoints, cache entries.

Their names can be guessed, so another user may put something there first. The file opened is a
regular file of this user with one name. Anything else is neither opened, nor written to, nor
removed: a link leads to another user's file, and opening a FIFO waits forever.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

OWN_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_ATTEMPTS = 3  # another process of this user may make and remove the same file
_MOST_LINKS = 40  # as Linux
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class ForeignFileError(PermissionError):
    """Something that streamtok did not make is where only a file of ours may be."""

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

    Raises FileNotFoundError if there is nothing, ForeignFileError if it is not ours, OSError.
    """
    try:
        fd = os.open(path, flags | OWN_FLAGS)
    except FileNotFoundError:
        raise
    except OSError:
        _check(os.lstat(path), path)  # says more than "too many levels of symbolic links"
        raise
    try:
        check_opened(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def create_own(path: str, flags: int, mode: int) -> int:
    """Create a file and return its descriptor. An old file of ours is removed first.

    Raises ForeignFileError if there is anything else, OSError.
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
    """Remove a file of ours, if it is there. Raises ForeignFileError, OSError."""
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

    follow: also through a symbolic link. Raises OSError, for anything but a regular file as well: a
    FIFO would wait for its writer.
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
    folder such as /tmp, another user would choose which file is replaced.
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
    """The owner of new files of this process in a folder: a network disk may map users."""
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
