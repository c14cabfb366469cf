"""The tables of well-known patterns, bundled with the package by `tools/make_patterns.py`.

Compiling a pattern takes tens of milliseconds; reading its tables takes one.
"""

from __future__ import annotations

import json
import os
import zlib
from functools import lru_cache

import numpy as np

from .automaton import Automaton
from .tables import CODE_POINTS_PER_BLOCK, Tables

__all__ = ["bundled_tables", "pack_tables"]

_FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "patterns.bin")
_MAGIC = b"streamtok patterns 4\n"
_FIELDS = (
    ("transitions", np.uint16),
    ("accepts", np.uint8),
    ("class_pages", np.uint16),
    ("class_blocks", np.uint8),
)


def pack_tables(automata: dict[str, Automaton]) -> bytes:
    """The contents of `data/patterns.bin`: one line per pattern, an empty line, and the tables.

    automata: by source. A line has the position and sizes of the tables, and the source as JSON.
    """
    from .windows import derive_windows  # only the tool that makes the file needs it

    index = body = b""
    for source, automaton in automata.items():
        windows = derive_windows(automaton)
        arrays = [getattr(automaton, name).astype(dtype) for name, dtype in _FIELDS]
        contents = b"".join(array.tobytes() for array in arrays)
        packed = zlib.compress(contents + (windows.to_bytes() if windows else b""), 9)
        numbers = len(body), len(packed), *automaton.transitions.shape, len(automaton.class_blocks)
        index += b"%d %d %d %d %d " % numbers + json.dumps(source).encode() + b"\n"
        body += packed
    return _MAGIC + index + b"\n" + body


@lru_cache(maxsize=1)
def bundled_tables(source: str) -> tuple[Tables, bytes] | None:
    """The tables of `source`, and its windows as bytes (b"" for none); None if not bundled."""
    index, body = _index()
    if source not in index:
        return None
    at, size, states, classes, n_blocks = index[source]
    data = zlib.decompress(body[at : at + size])
    shapes = (
        (states, classes),
        (states, classes + 1),
        (0x110000 // CODE_POINTS_PER_BLOCK,),
        (n_blocks, CODE_POINTS_PER_BLOCK),
    )
    arrays = []
    offset = 0
    for (_, dtype), shape in zip(_FIELDS, shapes, strict=True):
        little = np.dtype(dtype).newbyteorder("<")
        array = np.ndarray(shape, little, data, offset)
        arrays.append(array.astype(dtype))
        offset += array.nbytes
    return Tables(*arrays), data[offset:]


@lru_cache(maxsize=1)
def _index() -> tuple[dict[str, tuple[int, ...]], bytes]:
    """A dict from source to (offset, size, states, classes, blocks), and the packed tables."""
    try:
        with open(_FILE, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        data = b""
    if not data.startswith(_MAGIC):  # none or an older format, while the file is being made
        return {}, b""
    lines, _, body = data.removeprefix(_MAGIC).partition(b"\n\n")
    index = {}
    for line in lines.split(b"\n"):
        *numbers, source = line.split(b" ", 5)
        index[json.loads(source)] = tuple(map(int, numbers))
    return index, body
