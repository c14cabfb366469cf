"""Packed files with other values in them, and right checksums."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from streamtok.formats.packed import PACKED_MAGIC
from streamtok.vocabulary.sealed import builtins_of, seal


def opened(data: bytes) -> dict[str, Any]:
    """The fields of a packed file."""
    fields: dict[str, Any] = msgspec.msgpack.decode(data[len(PACKED_MAGIC) + 4 :])
    return fields


def closed(fields: dict[str, Any]) -> bytes:
    """The packed file with these fields."""
    return seal(PACKED_MAGIC, fields)


def as_array(values: bytes, kind: type[np.generic] = np.uint32) -> Any:
    """These bytes as an array is in the fields."""
    return builtins_of(np.frombuffer(values, kind))
