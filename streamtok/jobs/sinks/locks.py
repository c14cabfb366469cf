"""Locks on outputs, so that only one process at a time writes a file.

A lock is a hidden file next to the output. Its name is derived from the output's real path, so two
spellings of a path, or two formats that share a file, use the same lock. The system releases the
lock when the process dies.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable

from ...files import OWN_FLAGS, check_opened, check_own, hidden_path, named
from ..stores.urls import is_url

try:
    import fcntl
except ImportError:  # not POSIX
    fcntl = None  # type: ignore[assignment]

_UNSUPPORTED = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}


class Locks:
    """The locks of some outputs, held until `close`.

    Nothing is locked if the file system does not support locks (some network file systems do not),
    if the system is not POSIX, or if the output is in a store.
    """

    def __init__(self, paths: Iterable[str]):
        """Lock all of `paths`, or none of them.

        Raises BlockingIOError with the path that another process is writing, and OSError if a lock
        file cannot be created.
        """
        self._held: list[tuple[int, str]] = []
        if fcntl is None:
            return
        # Sorted, so that if two processes want the same locks, one of them gets them all.
        wanted = {os.path.realpath(path): path for path in paths if not is_url(path)}
        try:
            for final in sorted(wanted):
                self._take(hidden_path(final, "lock"), wanted[final])
        except BaseException:
            self.close()
            raise

    def _take(self, lock: str, path: str) -> None:
        while True:
            fd = -1
            try:
                with named(path):
                    fd = os.open(lock, os.O_RDWR | os.O_CREAT | OWN_FLAGS, 0o600)
                check_opened(fd, lock)
                if _is_locked(fd, lock):
                    self._held.append((fd, lock))
                    return
            except BlockingIOError:
                os.close(fd)
                raise BlockingIOError(
                    errno.EWOULDBLOCK, "another process is writing it", path
                ) from None
            except BaseException:  # a signal handler may raise anywhere
                if fd < 0:
                    check_own(lock)  # raises a clearer error if the lock is a link or a folder
                elif (fd, lock) not in self._held:
                    with contextlib.suppress(OSError):
                        check_opened(fd, lock)
                        if _is_locked(fd, lock):
                            os.remove(lock)
                    os.close(fd)
                raise
            os.close(fd)

    def close(self) -> None:
        """Release the locks."""
        while self._held:
            fd, lock = self._held.pop()
            try:
                with contextlib.suppress(OSError):
                    os.remove(lock)
            finally:  # even if a signal handler raises
                os.close(fd)


def _is_locked(fd: int, lock: str) -> bool:
    """Lock the open file. Return False if its previous owner removed it after we opened it.

    Raises BlockingIOError if another process holds the lock.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    try:
        return os.fstat(fd).st_ino == os.stat(lock).st_ino
    except FileNotFoundError:
        return False
