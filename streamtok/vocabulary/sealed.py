"""Records in streamtok's own files: a magic line, the CRC-32 of the rest, and MessagePack.

Damage is detected, and nothing in a file is executed. msgspec checks the types of a record's
fields; an array is stored as its type, its shape and its little-endian bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import numpy as np

__all__ = ["array_of", "builtins_of", "seal", "unseal"]

_ARRAY_TYPES = ("|u1", "<u2", "<u4", "<u8", "<f8")
_T = TypeVar("_T")


def builtins_of(value: Any) -> Any:
    """The stored form of an array: type, shape, bytes. Raises TypeError for other values."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a {type(value).__name__} cannot be written")
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return little.dtype.str, value.shape, little.tobytes()


def array_of(kind: type, value: Any) -> np.ndarray[Any, Any]:
    """The inverse of `builtins_of`. Raises TypeError or ValueError for damaged values."""
    dtype, shape, data = value
    if dtype not in _ARRAY_TYPES:
        raise ValueError(f"an array of {dtype!r}")
    array: Any = np.frombuffer(data, dtype)
    if array.shape != tuple(shape):
        array = array.reshape(shape)
    native: np.ndarray[Any, Any] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return native


def seal(magic: bytes, record: Any, write: Callable[[Any], Any] = builtins_of) -> bytes:
    """The contents of a file. write: converts a field of a type that MessagePack does not have."""
    packed = msgspec.msgpack.encode(record, enc_hook=write)
    return magic + zlib.crc32(packed).to_bytes(4, "little") + packed


def unseal(
    magic: bytes, data: bytes, kind: type[_T], read: Callable[[type, Any], Any] = array_of
) -> _T:
    """The record, of type `kind`. Raises ValueError for damaged contents or the wrong kind of file.

    read: the inverse of `write` in `seal`, called with the type of the field and the stored value.
    """
    if not data.startswith(magic):
        raise ValueError(f"it does not begin with {magic!r}")
    start = len(magic) + 4
    packed = memoryview(data)[start:]
    if zlib.crc32(packed).to_bytes(4, "little") != data[len(magic) : start]:
        raise ValueError("its checksum is wrong")
    try:
        return msgspec.msgpack.decode(packed, type=kind, dec_hook=read)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
