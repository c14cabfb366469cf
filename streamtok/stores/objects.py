"""Objects in stores: their sizes, ranges of their bytes, and writing them whole.

An object appears when its last byte has arrived: by one request, or by an upload in parts that is
completed at the end and discarded if anything fails. All requests are tried again (`retry`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from typing import Any, NamedTuple

from ..errors import MissingLibraryError
from .retry import retried
from .urls import check_writable, is_hub

_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "generation", "blob_id", "LastModified",
         "last_modified", "updated", "mtime", "created")  # fmt: skip
_ONE_REQUEST = 1 << 25  # bytes; larger files are left to the store, which may divide them
_BLOCK = 1 << 20


class Stored(NamedTuple):
    """An object as its store describes it: its size, None if unknown, and its version.

    tag: a text that changes when the object is replaced, as far as the store has any.
    """

    size: int | None
    tag: str


def _open_store(url: str) -> tuple[Any, str]:
    """fsspec's file system for the URL, and the name in it. Raises OSError, MissingLibraryError."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingLibraryError("URLs", "fsspec", "fs", error) from None
    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise MissingLibraryError(f"{url} cannot be opened: {error}") from None
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), url) from None
    return found


def describe(url: str) -> Stored:
    """The size and the version of an object. Raises OSError."""
    store, name = _open_store(url)

    def ask() -> Stored:
        found = store.info(name)
        if found.get("type") == "directory":
            raise IsADirectoryError(url)
        tags = [str(found[key]) for key in _TAGS if found.get(key) is not None]
        size = found.get("size")
        return Stored(None if size is None else int(size), tags[0] if tags else "")

    return retried(url, ask)


def read_range(url: str, start: int, stop: int, stopped: threading.Event | None = None) -> bytes:
    """The bytes start:stop, all of them. Raises OSError, also if the object ends before."""
    if start >= stop:
        return b""
    store, name = _open_store(url)

    def ask() -> bytes:
        data = bytes(store.cat_file(name, start=start, end=stop))
        if len(data) > stop - start:
            raise ValueError("it does not serve ranges of bytes: download the file first")
        if len(data) < stop - start:
            raise OSError(f"it sent {len(data)} of {stop - start} bytes from byte {start} on")
        return data

    return retried(url, ask, stopped)


def read_whole(url: str) -> bytes:
    """All bytes of a small object, which must have some. One request. Raises OSError."""
    store, name = _open_store(url)
    return retried(url, lambda: bytes(store.cat_file(name, start=0)))  # else s3fs asks for the size


def open_stream(url: str) -> Any:
    """A file object for an object whose size the store does not tell; it can be read once."""
    store, name = _open_store(url)
    return retried(url, lambda: store.open(name, "rb", block_size=0))


def write(url: str, data: bytes) -> None:
    """Create or replace a small object. Raises OSError."""
    check_writable(url)
    store, name = _open_store(url)
    retried(url, lambda: store.pipe_file(name, data))


def upload(path: str, url: str, *, is_new: bool = False) -> None:
    """Copy a file of this machine into the store. Raises OSError.

    is_new: raise FileExistsError if the object is there. S3, GCS, Azure and memory refuse in the
    same request, so of two writers only one succeeds; Hugging Face is asked before. A repeated
    request may find the object of the first one: compare before you call it foreign.
    """
    check_writable(url)
    store, name = _open_store(url)
    mode = "create" if is_new else "overwrite"
    if is_hub(url):
        if is_new:
            _refuse_existing(url)
        retried(url, lambda: _copy(path, store, name))
        return
    if os.path.getsize(path) <= _ONE_REQUEST:
        with open(path, "rb") as file:
            data = file.read()
        retried(url, lambda: store.pipe_file(name, data, mode=mode))
    else:
        retried(url, lambda: store.put_file(path, name, mode=mode))


def _copy(path: str, store: Any, name: str) -> None:
    """Copy a file by a file object of the store. Leaving its `with` would complete it anyhow."""
    target = store.open(name, "wb")
    try:
        with open(path, "rb") as source:
            while block := source.read(_BLOCK):
                target.write(block)
    except BaseException:
        target.closed = True  # so that nothing completes it
        raise
    target.close()


def _refuse_existing(url: str) -> None:
    """Raise FileExistsError if a store that cannot refuse by itself has the object."""
    with contextlib.suppress(FileNotFoundError):
        describe(url)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), url)


def remove(url: str) -> None:
    """Remove an object; nothing happens if there is none. Raises OSError."""
    store, name = _open_store(url)

    def ask() -> None:
        with contextlib.suppress(FileNotFoundError):
            store.rm_file(name)

    retried(url, ask)


def names_in(url: str) -> list[str]:
    """The last parts of the names of what lies directly in a folder. Raises OSError."""
    store, name = _open_store(url)

    def ask() -> list[str]:
        try:
            found = store.ls(name, detail=False)
        except FileNotFoundError:
            return []
        return [one.rstrip("/").rpartition("/")[2] for one in found]

    return retried(url, ask)


def expand(pattern: str) -> list[str]:
    """The URLs of the objects that match a pattern with * and **, sorted. Raises OSError."""
    store, name = _open_store(pattern)
    found = retried(pattern, lambda: store.glob(name, detail=True))
    names = [one for one, about in found.items() if about.get("type") != "directory"]
    return sorted(str(store.unstrip_protocol(one)) for one in names)
