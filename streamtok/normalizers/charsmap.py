"""SentencePiece's `precompiled_charsmap`: which texts are replaced, and how.

A map is the size of a trie in bytes, the trie, and the replacements, each with a zero byte
after it. The trie is the double array of the library Darts: little-endian numbers of 32
bits, the first one that of the root. A number says where the children of its node are, its lowest
byte is the byte that leads to it, and bit 8 tells that a key ends here: the number of its
children is, without the highest bit, where the replacement begins.

A map may come from anywhere, so nothing in it is believed: whatever leads out of the array or the
replacements is an error, and so are more keys than any real map has, which a cycle of nodes makes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

__all__ = ["read_charsmap"]

MOST_NODES = 1 << 20  # of the trie, written out, of keys of one length; real maps have 100 000
MOST_TEXT = 1 << 24  # characters of all replacements, each counted once
_LABEL = 0x800000FF
_LEAF = 1 << 8

Numbers = npt.NDArray[np.int64]


@lru_cache(maxsize=4)
def read_charsmap(data: bytes, longest: int, is_whole: bool = False) -> dict[str, str]:
    """The keys of up to `longest` bytes with their replacements, in order of the keys' lengths.

    is_whole: there must be no longer ones. Raises ValueError for a map that is damaged. Costs about
    50 ms for one of SentencePiece's maps and 5 bytes, 0.5 s for all of its keys.
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
        if len(bases) and int((bases | 0xFF).max()) >= len(units):
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
    """The numbers of the trie, and the replacements."""
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


def _children_at(units: Numbers, places: Numbers) -> Numbers:
    """Where the children of the nodes at `places` are, except for their labels."""
    return places ^ ((units >> 10) << ((units & 0x200) >> 6))


def _edges(units: Numbers) -> tuple[Numbers, Numbers]:
    """(where the children of its parent are, the node) of each node that has a label, in order."""
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
