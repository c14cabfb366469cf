"""What a server needs of the system: addresses to listen at, and file descriptors."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat

_SPARE_DESCRIPTORS = 192  # refused clients, metrics, threads, the interpreter


def open_unix(path: str, mode: int) -> tuple[socket.socket, tuple[int, int]]:
    """(socket, its device and inode): bound to `path` with the permissions `mode`, not listening.

    A socket that a dead server left is replaced. Raises FileExistsError if something else is
    there, OSError if another server listens or the path cannot be had.
    """
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        try:
            sock.bind(path)
        except OSError as error:
            # A path too long for a socket has no errno.
            code = error.errno or errno.ENAMETOOLONG
            raise OSError(code, os.strerror(code), path) from None
        # Before it listens: until then nobody can connect, whatever the umask is.
        os.chmod(path, mode)
        found = os.stat(path)
    except BaseException:
        sock.close()
        raise
    return sock, (found.st_dev, found.st_ino)


def remove_unix(path: str, inode: tuple[int, int] | None) -> None:
    """Remove the socket at `path` if it is the one with this device and inode: not a successor."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        if (found.st_dev, found.st_ino) == inode:
            os.unlink(path)


def _remove_stale(path: str) -> None:
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise FileExistsError(errno.EEXIST, "exists and is no socket", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError as error:  # too busy to answer, or not ours to ask
            code = error.errno or errno.EADDRINUSE
            raise OSError(code, os.strerror(code), path) from None
    raise OSError(errno.EADDRINUSE, "another server listens here", path)


def reserve_descriptors(connections: int | None, default: int) -> int:
    """int: how many connections there may be; the soft limit of open files is raised for them.

    connections: what was asked for; None: `default`, or as many as the hard limit allows. Raises
    OSError if the hard limit is too low for `connections`.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return default if connections is None else connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = float("inf") if hard == resource.RLIM_INFINITY else hard
    wanted = (connections or default) + _SPARE_DESCRIPTORS
    if wanted > highest:
        if connections is not None or highest <= _SPARE_DESCRIPTORS:
            raise OSError(
                errno.EMFILE,
                f"{wanted - _SPARE_DESCRIPTORS} connections need {wanted} open files, and the "
                f"limit is {hard} (ulimit -Hn)",
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
