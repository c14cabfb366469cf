"""SentencePiece's `precompiled_charsmap`: keys and their replacements.

A map contains the size of its trie in bytes, the trie, and zero-terminated replacements. The trie
is a double array of the library Darts: little-endian 32-bit units, of which the first is the
root's. A unit says where the children of its node are. Its lowest byte is the byte that leads to
the node. If bit 8 is set, a key ends here; then the unit at the base of the children, without its
highest bit, is the offset of the replacement.

Maps are not trusted: references outside the array or the replacements raise an error, as do more
keys than any real map has, which indicate a cycle of nodes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

__all__ = ["read_charsmap"]

MOST_NODES = 1 << 20  # at one depth of the trie, and the most keys; real maps have 100 000
MOST_TEXT = 1 << 24  # characters of all replacements, each counted once
_LABEL = 0x800000FF
_LEAF = 1 << 8

Numbers = npt.NDArray[np.int64]


@lru_cache(maxsize=4)
def read_charsmap(data: bytes, longest: int, is_whole: bool = False) -> dict[str, str]:
    """The keys of up to `longest` bytes with their replacements, in order of length in bytes.

    is_whole: refuse a map with longer keys. Raises ValueError for a damaged map. Takes about 50 ms
    for keys of up to 5 bytes of one of SentencePiece's maps, and 0.5 s for all its keys.
    """
    units, texts = _parts(data)
    found: dict[str, str] = {}
    replacements: dict[int, str] = {}
    parents, children = _edges(units)
    root = int(_children_at(units[:1], np.zeros(1, np.int64))[0])
    bases = np.array([root], np.int64)
    keys = np.zeros((1, 0), np.uint8)
    n_text = 0
    for _ in range(longest):
        if not len(bases):
            break
        if int((bases | 0xFF).max()) >= len(units):
            raise ValueError("a node's children are after the end of the trie")
        first = np.searchsorted(parents, bases, "left")
        counts = np.searchsorted(parents, bases, "right") - first
        if int(counts.sum()) > MOST_NODES:
            raise ValueError(f"more than {MOST_NODES} nodes: the trie contains a cycle")
        before = np.repeat(np.arange(len(bases)), counts)
        ranks = np.arange(len(before)) - np.repeat(np.cumsum(counts) - counts, counts)
        nodes = children[first[before] + ranks]
        labels = (units[nodes] & 0xFF).astype(np.uint8)
        keys = np.concatenate([keys[before], labels[:, None]], axis=1)
        bases = _children_at(units[nodes], nodes)
        is_key = (units[nodes] & _LEAF) != 0
        if is_key.any() and int(bases[is_key].max()) >= len(units):
            raise ValueError("a replacement is after the end of the trie")
        starts = units[bases[is_key]] & 0x7FFFFFFF
        for key, start in zip(keys[is_key], starts.tolist(), strict=True):
            if start not in replacements:
                replacements[start] = _replacement(texts, start)
                n_text += len(replacements[start])
                if n_text > MOST_TEXT:
                    raise ValueError(f"more than {MOST_TEXT} characters of replacements")
            found[_character(key.tobytes())] = replacements[start]
        if len(found) > MOST_NODES:
            raise ValueError(f"more than {MOST_NODES} keys: the trie contains a cycle")
    if is_whole and np.isin(bases, parents).any():
        raise ValueError(f"a key has more than {longest} bytes")
    return found


def _parts(data: bytes) -> tuple[Numbers, bytes]:
    """The units of the trie, and the replacements."""
    if len(data) < 4:
        raise ValueError(f"expected the size of the trie, found {len(data)} bytes")
    size = int.from_bytes(data[:4], "little") // 4 * 4
    if not 4 <= size <= len(data) - 4:
        raise ValueError(f"a trie of {size} bytes does not fit {len(data) - 4} bytes")
    texts = data[4 + size :]
    try:
        texts.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"the replacements are not UTF-8: {error}") from None
    return np.frombuffer(data, "<u4", size // 4, 4).astype(np.int64), texts


def _children_at(units: Numbers, nodes: Numbers) -> Numbers:
    """The bases of the children of `nodes`: a child is at its base XOR its label."""
    return nodes ^ ((units >> 10) << ((units & 0x200) >> 6))


def _edges(units: Numbers) -> tuple[Numbers, Numbers]:
    """(base of its parent's children, node) of each node with a label, sorted by base."""
    labels = units & _LABEL
    nodes = np.flatnonzero((labels > 0) & (labels < 0x100))
    parents = nodes ^ labels[nodes]
    order = np.argsort(parents, kind="stable")
    return parents[order], nodes[order]


def _replacement(texts: bytes, start: int) -> str:
    if start > len(texts):
        raise ValueError("a replacement begins after the end of the map")
    end = texts.find(b"\0", start)
    try:
        return texts[start : end if end >= 0 else len(texts)].decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("a replacement begins inside a character") from None


def _character(key: bytes) -> str:
    try:
        return key.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"the key {key!r} is not UTF-8, or ends inside a character") from None
