"""SentencePiece's own normalizer, slow and obvious."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["normalized"]

_MARK = "\u2581"


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
