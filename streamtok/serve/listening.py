"""Opens Unix sockets to listen on, and raises the limit of open files."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat

BACKLOG = 1024  # clients that may wait to be accepted; the system may allow fewer
_SPARE_DESCRIPTORS = 192  # for refused clients, metrics and the interpreter


def open_unix(path: str, mode: int) -> tuple[socket.socket, tuple[int, int]]:
    """Listen at `path` with permissions `mode`; return the socket and its (device, inode).

    Replaces the socket of a server that no longer runs. Raises FileExistsError if `path` is not a
    socket, and OSError if another server listens there or the path cannot be used.
    """
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        try:
            sock.bind(path)
        except OSError as error:
            # The error for a path that is too long for a socket has no errno.
            code = error.errno or errno.ENAMETOOLONG
            raise OSError(code, os.strerror(code), path) from None
        # Set before listening: until then no client can connect, whatever the umask allows.
        os.chmod(path, mode)
        found = os.lstat(path)
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock, (found.st_dev, found.st_ino)


def remove_unix(path: str, inode: tuple[int, int] | None) -> None:
    """Remove the socket at `path`, unless a different inode shows that a newer server made it."""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISSOCK(found.st_mode) and (found.st_dev, found.st_ino) == inode:
            os.unlink(path)


def _remove_stale(path: str) -> None:
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise FileExistsError(errno.EEXIST, "exists and is not a socket", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError as error:  # the server is too busy, or the permissions forbid it
            code = error.errno or errno.EADDRINUSE
            raise OSError(code, os.strerror(code), path) from None
    raise OSError(errno.EADDRINUSE, "another server is listening here", path)


def reserve_descriptors(connections: int | None, default: int) -> int:
    """Raise the soft limit of open files as needed; return the number of connections allowed.

    connections: the number the user asked for; None means `default`, or fewer if the hard limit
    requires it. Raises OSError if the limit cannot be raised; its message says what to do.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return default if connections is None else connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = (connections or default) + _SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and wanted > hard:
        fewer = hard - _SPARE_DESCRIPTORS
        if connections is not None or fewer <= 0:
            raise OSError(
                errno.EMFILE,
                f"{wanted - _SPARE_DESCRIPTORS} connections need {wanted} open files, and the hard "
                f"limit is {hard}: raise it (ulimit -Hn)"
                + (f", or use --max-connections {fewer}" if fewer > 0 else ""),
            )
        wanted = hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:  # macOS has a second, lower limit
            raise OSError(
                errno.EMFILE, f"the limit of open files cannot be raised to {wanted}: {error}"
            ) from None
    return wanted - _SPARE_DESCRIPTORS
