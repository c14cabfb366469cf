"""File operations on places: a place is a path on this machine or a URL."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import Any, BinaryIO, TextIO

from ...files import PartFile, naming, open_regular, write_whole
from . import objects
from .new_object import NewObject
from .object_reader import ObjectReader
from .urls import is_url, join

__all__ = ["is_url", "join"]  # defined in `urls`

_BLOCK = 1 << 18  # bytes


def open_binary(place: str, window: int = 1 << 18) -> BinaryIO:
    """Open a seekable file for reading. Raises OSError.

    window: the minimum number of bytes to request from a store; make it small to read only the
    beginning.
    """
    if is_url(place):
        return io.BufferedReader(ObjectReader(place, window))
    return open(open_regular(place), "rb")


def open_lines(place: str) -> TextIO:
    """Open UTF-8 text for reading. Raises OSError."""
    return io.TextIOWrapper(open_binary(place, 1 << 22), encoding="utf-8")


def read_head(place: str, size: int) -> bytes:
    """The first bytes, at most `size`. Raises OSError."""
    if is_url(place):
        return objects.read_head(place, size)
    with naming(place), open(open_regular(place), "rb") as file:
        return file.read(size)


def read_whole(place: str) -> bytes:
    """All bytes. Raises OSError."""
    if is_url(place):
        return objects.read_whole(place)
    with open(open_regular(place), "rb") as file:
        return file.read()


def size_of(place: str) -> int:
    """The size in bytes. Raises OSError, for instance if the file does not exist."""
    if is_url(place):
        return objects.describe(place).size
    return os.path.getsize(place)


def exists(place: str) -> bool:
    """Whether something exists there. Raises OSError if a request to a store fails."""
    if not is_url(place):
        return os.path.exists(place)
    try:
        objects.describe(place)
    except FileNotFoundError:
        return False
    except IsADirectoryError:
        pass
    return True


def make_folder(place: str) -> None:
    """Make a folder, unless it exists. Stores do not need folders."""
    if not is_url(place):
        os.makedirs(place, exist_ok=True)


def names_in(folder: str) -> list[str]:
    """The names in a folder. Raises OSError."""
    return objects.names_in(folder) if is_url(folder) else os.listdir(folder)


def write(place: str, data: bytes) -> None:
    """Create or replace a small file or object in one step. Raises OSError."""
    if is_url(place):
        objects.write(place, data)
    else:
        write_whole(place, data)


def open_new(
    place: str,
    *,
    is_new: bool = False,
    is_resumable: bool = False,
    goes_on: bool = False,
    **how: Any,
) -> PartFile:
    """Open a new file or object for writing, which appears when it is complete.

    is_new: publishing raises FileExistsError if the store has the object by then. The other
    arguments are as for PartFile; no other process can continue an object. Raises OSError; existing
    files are then unchanged.
    """
    if is_url(place):
        return NewObject(place, is_new=is_new, **how)
    return PartFile(place, is_resumable=is_resumable, goes_on=goes_on, **how)


def create(place: str, blocks: Iterable[bytes]) -> None:
    """Write a new file or object.

    Raises OSError: a FileExistsError if a store already has the object.

    A file on this machine would be replaced: the caller has checked that there is none, and other
    processes can only write the same contents.
    """
    with open_new(place, is_new=True) as file:
        kept = bytearray()  # blocks may be lines
        for block in blocks:
            kept += block
            if len(kept) >= _BLOCK:
                file.write(bytes(kept))
                kept.clear()
        file.write(bytes(kept))


def remove(place: str) -> None:
    """Remove a file or an object. Raises OSError."""
    if is_url(place):
        objects.remove(place)
    else:
        os.remove(place)
