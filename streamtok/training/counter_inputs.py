"""What a counter of pre-tokens is given: tables of a pattern, and texts that stay as they are."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import Scanner, utf8_of
from ..patterns.pattern import Pattern

if TYPE_CHECKING:
    from .._types import Text

__all__ = ["as_utf8", "copied", "scan_tables"]

_LARGE_STR = 1 << 16  # characters of a str; the UTF-8 of smaller ones is soon made, and small


@functools.lru_cache(maxsize=16)
def scan_tables(pattern: Pattern) -> tuple[Scanner, Any]:
    """The scanner that finds pre-tokens, and bool [128, 128]: where ASCII text may be cut."""
    ascii_classes = [pattern.class_of(point) for point in range(128)]
    scanner = Scanner(pattern, pattern.substitutes)
    return scanner, pattern.clean_cut_pairs[np.ix_(ascii_classes, ascii_classes)]


def as_utf8(text: Text) -> Text:
    """A large text that is a str as UTF-8, if that takes a copy.

    CPython would make it at half the speed, and keep it with the str. A str with a lone surrogate
    has none, and stays.
    """
    if type(text) is not str or len(text) < _LARGE_STR or text.isascii():
        return text
    return utf8_of(text) or text


def copied(text: Text) -> bytes:
    """What is bytes-like, as bytes of its own. Raises TypeError for everything else."""
    try:
        return bytes(memoryview(text))  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"text must be str or bytes-like, not {type(text).__name__}") from None
