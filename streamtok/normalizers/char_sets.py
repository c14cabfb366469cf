"""The sets of characters that steps use, from `streamtok/data/normalization.txt`.

They do not depend on Python's Unicode version; `tools/make_normalization.py` lists their sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

__all__ = ["joined", "lower_case_pairs", "one_of", "ranges_of", "ranges_of_characters"]

BEYOND = "\U00010000-\U0010ffff"  # the characters beyond the basic plane


@lru_cache(maxsize=1)
def _lines() -> dict[str, str]:
    path = Path(__file__).parents[1] / "data" / "normalization.txt"
    lines = path.read_text("ascii").splitlines()
    return {name: rest for name, _, rest in (line.partition(" ") for line in lines)}


def ranges_of(*names: str) -> list[tuple[int, int]]:
    """The union of the sets `names`: first and last code point of each range."""
    parts = (part.partition("-") for name in names for part in _lines()[name].split())
    return sorted((int(low, 16), int(high or low, 16)) for low, _, high in parts)


def joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same code points, as sorted ranges that do not touch."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def ranges_of_characters(characters: Iterable[str]) -> list[tuple[int, int]]:
    """These characters as ranges."""
    return joined((ord(char), ord(char)) for char in characters)


@lru_cache(maxsize=1)
def lower_case_pairs() -> dict[str, str]:
    """Uppercase letters newer than Unicode 13.0, with their lowercase letters."""
    pairs = (pair.split(":") for pair in _lines()["lower"].split())
    return {chr(int(upper, 16)): chr(int(lower, 16)) for upper, lower in pairs}


def one_of(ranges: Iterable[tuple[int, int]]) -> str:
    """A regular expression for one character of `ranges` that `re` matches fast.

    `re` has a bitmap for the basic plane, but tries all ranges beyond it for each character of the
    text, which is a hundred times slower. So those ranges are in a look-behind that is tried only
    after characters beyond the plane.
    """
    ranges = list(ranges)
    low = [(first, min(last, 0xFFFF)) for first, last in ranges if first < 0x10000]
    high = [(max(first, 0x10000), last) for first, last in ranges if last >= 0x10000]
    if not ranges:
        return "(?!)"
    if not high:
        return f"[{_spelled(low)}]"
    if high == [(0x10000, 0x10FFFF)]:
        return f"[{_spelled(low)}{BEYOND}]"
    return f"(?:[{_spelled(low)}{BEYOND}](?:(?<![{BEYOND}])|(?<=[{_spelled(high)}])))"


def _spelled(ranges: list[tuple[int, int]]) -> str:
    return "".join(f"{re.escape(chr(low))}-{re.escape(chr(high))}" for low, high in ranges)
