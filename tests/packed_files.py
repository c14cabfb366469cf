"""Packed files with other values in them, and right checksums."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from streamtok.formats.packed import PACKED_MAGIC, sealed


def opened(data: bytes) -> dict[str, Any]:
    """The fields of a packed file."""
    fields: dict[str, Any] = msgspec.msgpack.decode(data[len(PACKED_MAGIC) + 4 :])
    return fields


def closed(fields: dict[str, Any]) -> bytes:
    """The packed file with these fields."""
    return sealed(msgspec.msgpack.encode(fields))


def as_array(values: Any, kind: type[np.generic] = np.uint32) -> list[Any]:
    """An array, or bytes, as an array is in the fields."""
    array = np.frombuffer(values, kind) if isinstance(values, bytes) else values
    return [array.dtype.str, array.shape, array.tobytes()]
