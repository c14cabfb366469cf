"""The cache of `load`: the packed form of large vocabulary files, in the user's cache folder.

The name of an entry is a SHA-256 of the file's contents and of the names, sizes and modification
times of streamtok's own files, so changes to the file or to streamtok lead to a new entry. An entry
is made by `packed.dumps_packed`; its checksum reveals damage, and a damaged entry is made again.
Errors in the cache are ignored: if its folder cannot be written to, there is no cache.

An entry decides which ids a text gets. So the folder and the entries must belong to this user, and
only this user may write to them; otherwise they are not used. Only files whose names are those of
entries or of unfinished entries are ever removed.

The folder is `streamtok` inside the folder that `STREAMTOK_CACHE` names; "off" disables the cache.
By default, it is in `XDG_CACHE_HOME` or `~/.cache`, on macOS in `~/Library/Caches`, and on Windows
in `%LOCALAPPDATA%`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import StreamtokError
from ..files import create_own, is_private, open_own
from .loading import MAX_FILE_BYTES
from .packed import dumps_packed, loads_packed

if TYPE_CHECKING:
    import hashlib

    from ..encoding import Encoding

__all__ = ["cache_folder", "find_kept", "keep"]

MIN_BYTES = 1 << 18  # smaller files load as fast without a cache
MAX_BYTES = 1 << 28  # of all entries; if there are more, the least recently used are removed
_BLOCK = 1 << 18  # bytes read at a time
_VARIABLE = "STREAMTOK_CACHE"
_SUFFIX = ".streamtok"
_NAME = re.compile(r"[0-9a-f]{64}\.streamtok(\.\d+\.\d+\.part)?")  # of entries, finished or not


def find_kept(source: str, name: str) -> Encoding | None:
    """The cached encoding of a file with these contents, or None. Raises OSError.

    The file is read in blocks: allocating memory for all of it takes as long as the checksum.
    """
    folder = cache_folder()
    if folder is None:
        return None
    block = bytearray(_BLOCK)
    with open(source, "rb", buffering=0) as file:
        if not MIN_BYTES <= os.fstat(file.fileno()).st_size <= MAX_FILE_BYTES:
            return None
        key = _key()
        while size := file.readinto(block):
            key.update(memoryview(block)[:size])
    path = os.path.join(folder, key.hexdigest() + _SUFFIX)
    with contextlib.suppress(OSError, StreamtokError):
        encoding = loads_packed(_read(path), source, name)
        with contextlib.suppress(OSError):
            os.utime(path)  # mark it as just used
        return encoding
    return None


def keep(data: bytes, encoding: Encoding) -> None:
    """Keep the encoding of a file with these contents, if the file is large."""
    folder = cache_folder()
    if folder is None or len(data) < MIN_BYTES:
        return
    key = _key()
    key.update(data)
    # The last two errors: MessagePack allows no integers above 64 bits and no lone surrogates.
    with contextlib.suppress(OSError, MemoryError, OverflowError, ValueError):
        _store(os.path.join(folder, key.hexdigest() + _SUFFIX), dumps_packed(encoding))


def _key() -> hashlib._Hash:
    import hashlib

    return hashlib.sha256(_code())


def cache_folder() -> str | None:
    """The folder of the entries, which need not exist yet; None if there is no cache."""
    chosen = os.environ.get(_VARIABLE)
    if chosen is not None:
        off = chosen.lower() in ("", "off")
        return None if off else os.path.join(os.path.abspath(chosen), "streamtok")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):  # as the XDG specification requires
            base = os.path.expanduser("~/.cache")
    return os.path.join(base, "streamtok") if os.path.isabs(base) else None


@functools.cache
def _code() -> bytes:
    """Identifies this installation of streamtok: the names, sizes and modification times of its
    files.
    """
    files = sorted(_files_of(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    return repr(files).encode()


def _files_of(folder: str) -> Iterator[tuple[str, int, int]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files_of(entry.path)
            else:
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def _read(path: str) -> bytes:
    """The contents of an entry. Raises OSError if it is missing or cannot be trusted."""
    _check_folder(os.path.dirname(path))
    with open(open_own(path, os.O_RDONLY), "rb") as file:
        if not is_private(os.fstat(file.fileno())):
            raise PermissionError(path)
        return file.read()


def _check_folder(folder: str) -> None:
    """Raise OSError unless `folder` is a folder, not a link, that only this user can write to."""
    status = os.lstat(folder)
    if not (stat.S_ISDIR(status.st_mode) and is_private(status)):
        raise PermissionError(folder)


def _store(path: str, data: bytes) -> None:
    """Write an entry completely or not at all; then remove old entries beyond the limit."""
    folder = os.path.dirname(path)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    _check_folder(folder)
    part = f"{path}.{os.getpid()}.{time.monotonic_ns()}.part"
    try:
        with open(create_own(part, os.O_WRONLY, 0o600), "wb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise
    _remove_oldest(folder)


def _remove_oldest(folder: str) -> None:
    """Remove the least recently used entries until the total is at most MAX_BYTES.

    Unfinished entries that dead processes left behind count, too. No files with other names are
    touched.
    """
    _check_folder(folder)
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process may have removed it
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and _NAME.fullmatch(entry.name):
                    found.append((status.st_mtime_ns, status.st_size, entry.path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= MAX_BYTES:
            break
        with contextlib.suppress(OSError):
            os.remove(path)
        total -= size
