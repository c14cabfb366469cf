"""The normalizer Precompiled of a tokenizer.json: a map of SentencePiece, slow and obvious.

Grapheme clusters are those of the `regex` package, whose Unicode may be newer than tokenizers'.
"""

from __future__ import annotations

import regex

__all__ = ["mapped"]


def mapped(charsmap: bytes, text: str) -> str:
    """`text` after the map, which must be sound."""
    return "".join(_mapped(charsmap, cluster) for cluster in regex.findall(r"\X", text))


def _mapped(charsmap: bytes, cluster: str) -> str:
    """A grapheme cluster in a map of SentencePiece: as a whole if it is short, or its characters.

    What begins a short one decides, and the rest of it is lost.
    """
    if len(cluster.encode()) < 6:
        found = _shortest_in_map(charsmap, cluster)
        if found is not None:
            return found
    found_each = [(_shortest_in_map(charsmap, c), c) for c in cluster]
    return "".join(c if found is None else found for found, c in found_each)


def _shortest_in_map(charsmap: bytes, text: str) -> str | None:
    """The replacement of the shortest key that `text` begins with, in the double array of a map."""
    size = int.from_bytes(charsmap[:4], "little")
    units, replacements = memoryview(charsmap[4 : 4 + size]).cast("I"), charsmap[4 + size :]

    def children(place: int) -> int:
        return place ^ (units[place] >> 10 << ((units[place] & 0x200) >> 6))

    place = children(0)
    for byte in text.encode():
        place ^= byte
        if not byte or units[place] & 0x800000FF != byte:
            return None
        has_value = units[place] & 0x100
        place = children(place)
        if has_value:
            start = units[place] & 0x7FFFFFFF
            return replacements[start:].partition(b"\0")[0].decode()
    return None
