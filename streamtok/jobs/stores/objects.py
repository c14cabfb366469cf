"""Reads the sizes and bytes of objects in stores, and writes whole objects.

An object appears only when its last byte has arrived: it is written by one request, or by an upload
in parts that is discarded if anything fails. The store's own library retries requests.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...errors import MissingLibraryError
from .urls import check_writable

_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "generation", "blob_id", "LastModified",
         "last_modified", "updated", "mtime", "created")  # fmt: skip
_ERRORS = (
    (FileNotFoundError, errno.ENOENT),
    (PermissionError, errno.EACCES),
    (FileExistsError, errno.EEXIST),
    (IsADirectoryError, errno.EISDIR),
)


class Stored(NamedTuple):
    """The size and a tag of an object or a file, by which changes are detected.

    tag: for an object, its version, or "" if the store has none; for a file, a digest of samples.
    """

    size: int
    tag: str


@contextlib.contextmanager
def _open_store(url: str) -> Iterator[tuple[Any, str]]:
    """fsspec's file system for a URL, and the object's name in it, in a `naming_object`.

    Raises OSError and MissingLibraryError.
    """
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
    with naming_object(url):
        yield found


@contextlib.contextmanager
def naming_object(url: str) -> Iterator[None]:
    """Convert errors that a store raises in this context to OSErrors that name the URL."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        for kind, number in _ERRORS:
            if isinstance(error, kind):
                raise OSError(number, os.strerror(number), url) from error
        text = str(error).strip().partition("\n")[0] or type(error).__name__
        raise OSError(errno.EIO, f"the store failed: {text}", url) from error


def describe(url: str) -> Stored:
    """The size and the version of an object. Raises OSError, including if the size is unknown."""
    with _open_store(url) as (store, name):
        found = store.info(name)
        if found.get("type") == "directory":
            raise IsADirectoryError(url)
    tags = [str(found[key]) for key in _TAGS if found.get(key) is not None]
    if found.get("size") is None:
        raise OSError(errno.ESPIPE, "the store does not report its size: download it first", url)
    return Stored(int(found["size"]), tags[0] if tags else "")


def open_object(url: str, ahead: int) -> Any:
    """Open an object for reading, as a file object of fsspec. Raises OSError.

    ahead: bytes to request from the store at a time.
    """
    with _open_store(url) as (store, name):
        return store.open(name, "rb", block_size=ahead)


def read_head(url: str, size: int) -> bytes:
    """The first bytes of an object, at most `size`. Raises OSError."""
    there = describe(url).size
    if there == 0:
        return b""  # stores reject requests for an empty range
    with _open_store(url) as (store, name):
        return bytes(store.cat_file(name, start=0, end=min(size, there)))


def read_whole(url: str) -> bytes:
    """Read a small object, which must not be empty, in one request. Raises OSError."""
    with _open_store(url) as (store, name):
        return bytes(store.cat_file(name, start=0))  # without start, s3fs requests the size, too


def write(url: str, data: bytes) -> None:
    """Create or replace a small object. Raises OSError."""
    check_writable(url)
    with _open_store(url) as (store, name):
        store.pipe_file(name, data)


def upload(path: str, url: str, *, is_new: bool = False) -> None:
    """Copy a file on this machine into the store. Raises OSError.

    is_new: raise FileExistsError if the object exists. The store checks this in the same request,
    so only one of two writers succeeds.
    """
    check_writable(url)
    mode = "create" if is_new else "overwrite"
    try:
        with _open_store(url) as (store, name):
            store.put_file(path, name, mode=mode)
    except OSError as error:
        # Each library has its own exception for status 412, with which a store refuses the request.
        if is_new and error.errno != errno.EACCES:
            with contextlib.suppress(FileNotFoundError):
                describe(url)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), url) from error
        raise


def remove(url: str) -> None:
    """Remove an object, if it exists. Raises OSError."""
    with contextlib.suppress(FileNotFoundError), _open_store(url) as (store, name):
        store.rm_file(name)


def names_in(url: str) -> list[str]:
    """The names directly in a folder, without its path; none if it is missing. Raises OSError."""
    try:
        with _open_store(url) as (store, name):
            found = store.ls(name, detail=False)
    except FileNotFoundError:
        return []
    return [one.rstrip("/").rpartition("/")[2] for one in found]


def expand(pattern: str) -> list[str]:
    """The URLs of the objects that match a pattern with * and **, sorted. Raises OSError."""
    with _open_store(pattern) as (store, name):
        found = store.glob(name, detail=True)
    names = [one for one, about in found.items() if about.get("type") != "directory"]
    return sorted(str(store.unstrip_protocol(one)) for one in names)
