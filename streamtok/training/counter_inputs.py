"""What a counter of pre-tokens is given: the tables of a pattern, and large texts."""

from __future__ import annotations

import functools

from .._core.encode import Cuts, Scanner
from ..patterns.pattern import Pattern

__all__ = ["is_wide", "scan_tables"]

_LARGE_STR = 1 << 16  # characters of a str; the UTF-8 of smaller ones is soon made, and small


@functools.lru_cache(maxsize=16)
def scan_tables(pattern: Pattern) -> tuple[Scanner, Cuts]:
    """The scanner that finds pre-tokens, and where text may be cut."""
    scanner = Scanner(pattern, pattern.substitutes)
    return scanner, Cuts(scanner, pattern.clean_cut_pairs)


def is_wide(text: str) -> bool:
    """Whether a str is large and its UTF-8 must be made.

    CPython would make it at half the speed, and keep it with the str.
    """
    return type(text) is str and len(text) >= _LARGE_STR and not text.isascii()
