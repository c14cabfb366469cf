"""Writes what `normalizers/charsmap.py` reads: maps of SentencePiece."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

LEAF = 1 << 8


def write_charsmap(replacements: Mapping[str, str]) -> bytes:
    """A map of these keys, larger than SentencePiece's would be.

    Keys and replacements must not have U+0000, and a key must not be empty.
    """
    trie: dict[int, Any] = {}
    texts = bytearray()
    for key, text in replacements.items():
        node = trie
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[0] = len(texts)
        texts += text.encode() + b"\0"
    units = [0]
    taken = {0}
    bases: set[int] = set()
    queue = [(0, trie)]
    first = 1  # where to look for room for children
    for place, node in queue:
        base = next(
            base
            for base in itertools.count(first)
            if base not in bases and taken.isdisjoint(base ^ byte for byte in node)
        )
        bases.add(base)
        units += [0] * ((base | 0xFF) + 1 - len(units))
        units[place] |= (place ^ base) << 10 | (LEAF if 0 in node else 0)
        for byte, child in node.items():
            taken.add(base ^ byte)
            if byte:
                units[base ^ byte] = byte
                queue.append((base ^ byte, child))
            else:
                units[base] = 1 << 31 | child
        while first in taken:
            first += 1
    array = np.array(units, "<u4").tobytes()
    return len(array).to_bytes(4, "little") + array + bytes(texts)
