"""Locks on outputs: while one process makes a file, no other one does.

A lock is a hidden file next to the output, named by the output's real path, so that two spellings
of one path, or two formats that share a file, meet. The system gives it back when a process dies.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable

from ...files.part_file import hidden_path, named

_UNSUPPORTED = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}


class Locks:
    """The locks of some outputs, held until `close`.

    Where the file system has no locks (some network ones), or the system is not POSIX, nothing is
    locked.
    """

    def __init__(self, paths: Iterable[str]):
        """Raises BlockingIOError with the path that another process is making; then none is held.

        Raises OSError where no file can be made.
        """
        self._held: list[tuple[int, str]] = []
        # In order of the real paths: of two that want the same ones, the first gets them all.
        wanted = {os.path.realpath(path): path for path in paths}
        try:
            for final in sorted(wanted):
                self._take(hidden_path(final, "lock"), wanted[final])
        except BaseException:
            self.close()
            raise

    def _take(self, lock: str, path: str) -> None:
        try:
            import fcntl
        except ImportError:  # not POSIX
            return
        while True:
            with named(path):
                fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The one who had it may have removed the file since we opened it.
                if os.fstat(fd).st_ino == os.stat(lock).st_ino:
                    self._held.append((fd, lock))
                    return
            except BlockingIOError:
                os.close(fd)
                raise BlockingIOError(
                    errno.EWOULDBLOCK, "another process is writing it", path
                ) from None
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno in _UNSUPPORTED:
                    self._held.append((fd, lock))
                    return
                os.close(fd)
                raise
            os.close(fd)

    def close(self) -> None:
        """Let other processes have the outputs."""
        while self._held:
            fd, lock = self._held.pop()
            try:
                with contextlib.suppress(OSError):
                    os.remove(lock)
            finally:  # also if a signal's handler raises
                os.close(fd)
