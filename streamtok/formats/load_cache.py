"""What `load` keeps: the packed form of large vocabulary files, in the user's cache folder.

A file's entry has the SHA-256 of its contents and of the code that read it in its name: another
file, another streamtok or a change of its sources is another entry. An entry is what
`packed.dumps_packed` writes; its checksums tell damage, and a damaged one is made again. Nothing
here ever fails: without a folder that can be written to, there is no cache.

`STREAMTOK_CACHE` names another folder, or is "off". The default is `streamtok` in `XDG_CACHE_HOME`
or `~/.cache`, on macOS in `~/Library/Caches`, on Windows in `%LOCALAPPDATA%`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..errors import StreamtokError
from .packed import PACKED_VERSION, dumps_packed, loads_packed

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["cache_folder", "load_kept"]

MIN_BYTES = 1 << 18  # smaller files load as fast without
MAX_BYTES = 1 << 28  # of all entries: some dozens; those that were not used for longest go first
_VARIABLE = "STREAMTOK_CACHE"
_SUFFIX, _PART = ".streamtok", ".part"
_PART_SECONDS = 3600  # a part that is older belongs to a process that is no more


def load_kept(data: bytes, source: str, name: str, make: Callable[[], Encoding]) -> Encoding:
    """The encoding that `make` makes of the contents `data` of a file: kept, or made and kept now.

    source, name: of the file and of the encoding. Raises what `make` raises.
    """
    folder = cache_folder() if len(data) >= MIN_BYTES else None
    if folder is None:
        return make()
    import hashlib

    key = hashlib.sha256(data)
    key.update(_code())
    path = os.path.join(folder, key.hexdigest() + _SUFFIX)
    with contextlib.suppress(OSError, StreamtokError, ValueError):
        with open(path, "rb") as file:
            kept = file.read()
        encoding = loads_packed(kept, source, name)
        with contextlib.suppress(OSError):
            os.utime(path)  # it was used now
        return encoding
    encoding = make()
    with contextlib.suppress(OSError, MemoryError, TypeError):  # a rule that cannot be packed, too
        _store(path, dumps_packed(encoding))
    return encoding


def cache_folder() -> str | None:
    """The folder of the entries, which need not exist; None: nothing is to be kept."""
    chosen = os.environ.get(_VARIABLE)
    if chosen is not None:
        return None if chosen.lower() in ("", "off") else os.path.abspath(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):  # as the XDG specification says
            base = os.path.expanduser("~/.cache")
    return os.path.join(base, "streamtok") if os.path.isabs(base) else None


@functools.cache
def _code() -> bytes:
    """What tells this streamtok from others: the names, sizes and times of its files."""
    files = sorted(_files_of(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    return repr((PACKED_VERSION, files)).encode()


def _files_of(folder: str) -> Iterator[tuple[str, int, int]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files_of(entry.path)
            else:
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def _store(path: str, data: bytes) -> None:
    """Write an entry, which is there whole or not at all, and remove what is too much."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    part = f"{path}.{os.getpid()}.{time.monotonic_ns()}{_PART}"
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(fd, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise
    _remove_oldest(folder)


def _remove_oldest(folder: str) -> None:
    """Remove entries, those that were not used for longest first, until MAX_BYTES are not exceeded.

    Only files with the names of entries and of parts are touched.
    """
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process may have removed it
                status = entry.stat(follow_symlinks=False)
                if entry.name.endswith(_SUFFIX):
                    found.append((status.st_mtime_ns, status.st_size, entry.path))
                elif entry.name.endswith(_PART) and status.st_mtime + _PART_SECONDS < time.time():
                    os.remove(entry.path)
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= MAX_BYTES:
            break
        with contextlib.suppress(OSError):
            os.remove(path)
        total -= size
