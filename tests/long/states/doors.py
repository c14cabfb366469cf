"""The doors through which ids leave a stream, and the buffers that `encode_into` gets."""

from __future__ import annotations

import array
import ctypes
import random
from collections.abc import MutableSequence
from typing import Any

import numpy as np

import streamtok

from .texts import Chunk

DOORS = ["list", "list", "list", "array", "into", "into, behind"]
BEHIND = 7  # items that "into, behind" leaves as they are
MARK = 0xABCD  # what is in a buffer before; that and an id are told apart by their place


def new_out(rng: random.Random, size: int) -> Any:
    """A writable buffer for `size` ids."""
    kind = rng.randrange(7)
    if kind == 0:
        return np.full(size, MARK, np.uint32)
    if kind == 1:
        return np.full(size, MARK, np.uint16)
    if kind == 2:
        return array.array("I", [MARK]) * size
    if kind == 3:
        return array.array("H", [MARK]) * size
    if kind == 4:
        return memoryview(bytearray(np.full(size, MARK, np.uint32))).cast("I")
    if kind == 5:
        return (ctypes.c_uint32 * size).from_buffer_copy(np.full(size, MARK, np.uint32))
    return np.full(size + 3, MARK, np.uint32)[2 : 2 + size]


def through(
    door: str,
    stream: streamtok.StreamEncoder,
    chunk: Chunk,
    final: bool,
    out: Any = None,
    arrays: MutableSequence[tuple[Any, list[int]]] | None = None,
) -> list[int]:
    """The ids of one call. `arrays`: an array of them is kept there, and what it holds by now."""
    if door == "list":
        ids = stream.encode(chunk, final) if final else stream.encode(chunk)
        assert type(ids) is list, f"encode gave a {type(ids).__name__}"
        return ids
    if door == "array":
        got = stream.encode_to_numpy(chunk, final=final)
        assert got.dtype == np.uint32, f"encode_to_numpy gave {got.dtype}"
        ids = got.tolist()
        if arrays is not None:
            arrays.append((got, ids))
        return ids
    start = BEHIND if door == "into, behind" else 0
    given = {"start": start} if start else {}
    count = stream.encode_into(chunk, out, final, **given)
    written = np.ctypeslib.as_array(out) if isinstance(out, ctypes.Array) else np.asarray(out)
    assert (written[:start] == MARK).all(), f"encode_into wrote before item {start}"
    assert (written[start + count :] == MARK).all(), f"encode_into wrote beyond its {count} ids"
    found: list[int] = written[start : start + count].tolist()
    return found
