"""A map of SentencePiece, slow and obvious: as tokenizers reads it, and as SentencePiece does.

`mapped` is the normalizer Precompiled of a tokenizer.json. Grapheme clusters are those of the
`regex` package, whose Unicode may be newer than tokenizers'. `normalized` is SentencePiece's own
normalizer.
"""

from __future__ import annotations

from collections.abc import Mapping

import regex

__all__ = ["mapped", "normalized"]

_MARK = "\u2581"


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


def normalized(
    keys: Mapping[str, str], symbols: set[str], dummy: bool, removes: bool, text: str
) -> str:
    """`text` as SentencePiece's pieces have it, with U+2581 for spaces.

    keys: the map. symbols: user-defined ones. dummy: add_dummy_prefix. removes:
    remove_extra_whitespaces.
    """

    longest = max(map(len, [*symbols, *keys]), default=0)

    def head(rest: str) -> tuple[str, int]:
        """What the beginning of `rest` becomes, and how long that beginning is."""
        for known in ({symbol: symbol for symbol in symbols}, keys):
            for size in range(min(len(rest), longest), 0, -1):
                if rest[:size] in known:
                    return known[rest[:size]], size
        return rest[0], 1

    at = 0
    while removes and at < len(text):
        found, size = head(text[at:])
        if found != " ":
            break
        at += size
    if at == len(text):
        return ""
    result = _MARK if dummy else ""
    is_after_space = removes
    while at < len(text):
        found, size = head(text[at:])
        if is_after_space:
            found = found.lstrip(" ")
        result += found.replace(" ", _MARK)
        if found:
            is_after_space = removes and found.endswith(" ")
        at += size
    return result.rstrip(_MARK) if removes else result
