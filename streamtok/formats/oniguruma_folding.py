"""What `(?i:…)` matches in Oniguruma beyond one character for one, and a DFA here does not.

There, "ß" also matches "ss", and "ss" also matches "ß": 104 characters have such a case variant of
two or three characters. It happens to literals, alone or in a row, and to the members of sets in
brackets that are not negated. Literals with a quantifier are in no row; `\\p{L}` outside of
brackets, `.` and sets that begin with `[^` match one character only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ..patterns.pattern import Pattern

__all__ = ["find_long_folding"]

_ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\f": "\f", r"\v": "\v"}


@lru_cache(maxsize=1)
def _long_foldings() -> dict[str, str]:
    """Characters whose case folding is longer, and that."""
    ranges = ((0xDF, 0x590), (0x1E96, 0x2000), (0xFB00, 0xFB18))
    chars = [chr(point) for low, high in ranges for point in range(low, high)]
    return {char: char.casefold() for char in chars if len(char.casefold()) > 1}


def find_long_folding(parts: Iterable[re.Match[str]]) -> re.Match[str] | None:
    """The first part of a pattern that such a match may begin or end with; None if there is none.

    parts: escapes, sets, beginnings of groups and characters, in order; a quantifier has the group
    "quantifier".
    """
    is_folding = [False]
    row = ""
    for part in parts:
        text = part[0]
        if text.startswith("("):
            is_folding.append(is_folding[-1] or text == "(?i:")
            row = row if text in ("(?:", "(?>") else ""
        elif text == ")":
            if len(is_folding) > 1:
                is_folding.pop()
        elif part["quantifier"] or not is_folding[-1] or text == "|":
            row = ""
        elif text.startswith("["):
            row = ""
            if _has_long_folding(text):
                return part
        else:
            literal = _literal(text)
            if literal is None:
                return part
            row = row + literal if literal else ""
            if _is_quantified(part):
                row = ""
                if literal in _long_foldings():
                    return part
            elif any(folding in row.casefold() for folding in _long_foldings().values()):
                return part
    return None


def _is_quantified(part: re.Match[str]) -> bool:
    return re.match(r"[?*+]|\{\d*,?\d*\}", part.string[part.end() : part.end() + 99]) is not None


def _literal(text: str) -> str | None:
    """The character that a part stands for; "" for a class of characters, None if not known."""
    if not text.startswith("\\"):
        return "" if text == "." else text
    if text.startswith(r"\x{"):
        point = int(text[3:-1] or "0", 16)
        return chr(point) if point < 0x110000 else None
    if text in (r"\u", r"\x") or text[1:].isdigit():
        return None
    if text in _ESCAPES:
        return _ESCAPES[text]
    return "" if text[1:2].isalpha() else text[1:]


def _has_long_folding(spelled: str) -> bool:
    """Whether a set has a character whose case folding is longer."""
    if spelled.startswith("[^") or (spelled.isascii() and "\\" not in spelled):
        return False
    pattern = Pattern.compile(spelled)
    return any(pattern.findall(char) for char in _long_foldings())
