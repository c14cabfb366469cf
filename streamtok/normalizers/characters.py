"""Steps that change each character by itself.

The characters depend on the Unicode versions of `tokenizers`' crates, not on that of Python.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from ..vocabulary.byte_alphabet import CHARACTERS
from .char_sets import lower_case_pairs, one_of, ranges_of, ranges_of_characters
from .edges import WHITE_SPACE
from .growth import Growth
from .step import Interest, Ranges, Step

__all__ = [
    "BertAccents",
    "BertChinese",
    "BertClean",
    "ByteLetters",
    "CharacterStep",
    "Lowercase",
    "Nmt",
    "StripAccents",
]

NMT_DROPPED = [(1, 8), (0xB, 0xB), (0xE, 0x1F), (0x7F, 0x7F), (0x8F, 0x8F), (0x9F, 0x9F)]
NMT_SPACES = "\t\n\f\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd"
CHINESE = [
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
]


class CharacterStep(Step):
    """Each character of `ranges` is replaced by what `become` returns."""

    __slots__ = ("_ranges", "spec")
    growth = Growth(1.0)

    def __init__(self, ranges: Ranges) -> None:
        self.spec: tuple[Any, ...] = (type(self).__name__,)
        self._ranges = tuple(ranges)

    def become(self, char: str) -> str:
        """The replacement of one of the characters; by default, it is removed."""
        return ""

    def interest(self) -> Interest:
        return Interest(self._ranges)

    def apply(self, text: str, where: int) -> str:
        return _pattern(self._ranges).sub(lambda found: self.become(found[0]), text)


class Lowercase(CharacterStep):
    """Each character becomes its lowercase letter in Unicode 17.0, whatever its neighbours are.

    So a capital sigma never becomes a final sigma; with `str.lower`, it does at the end of a word.
    """

    __slots__ = ()
    growth = Growth(1.5)  # capital A with a stroke has two bytes, the lowercase letter three

    def __init__(self) -> None:
        super().__init__(_capitals())

    def become(self, char: str) -> str:
        return lower_case_pairs().get(char) or char.lower()


class StripAccents(CharacterStep):
    """Removes the marks (Mn, Mc, Me) of Unicode 9.0."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ranges_of("accents"))


class BertAccents(CharacterStep):
    """Removes the nonspacing marks (Mn) of Unicode 8.0. BertNormalizer applies NFD before."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ranges_of("bert_accents"))


class BertChinese(CharacterStep):
    """Adds a space on both sides of each Chinese character, as in BertNormalizer."""

    __slots__ = ()
    growth = Growth(5 / 3)

    def __init__(self) -> None:
        super().__init__(CHINESE)

    def become(self, char: str) -> str:
        return f" {char} "


class _Cleaner(CharacterStep):
    """Removes some characters and replaces others by a space."""

    __slots__ = ("_spaces",)

    def __init__(self, dropped: Ranges, spaces: str) -> None:
        super().__init__([*dropped, *ranges_of_characters(spaces)])
        self._spaces = spaces

    def become(self, char: str) -> str:
        return " " if char in self._spaces else ""


class Nmt(_Cleaner):
    """Removes some control characters; each character of NMT_SPACES becomes a space."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(NMT_DROPPED, NMT_SPACES)


class BertClean(_Cleaner):
    """Removes U+FFFD and the control, format and private characters (Cc, Cf, Co) of Unicode 8.0.

    Tab, newline, carriage return and all white space that is not a control character become spaces.
    """

    __slots__ = ()

    def __init__(self) -> None:
        spaces = WHITE_SPACE.translate(dict.fromkeys(b" \v\f\x85"))
        super().__init__(ranges_of("bert_controls"), spaces)


class ByteLetters(CharacterStep):
    """Each byte of the text becomes its letter in GPT-2's byte alphabet, as with ByteLevel.

    Bytes that are not UTF-8 are kept.
    """

    __slots__ = ()
    growth = Growth(2.0)

    def __init__(self) -> None:
        super().__init__([(0, 0x20), (0x7F, 0xD7FF), (0xE000, 0x10FFFF)])

    def become(self, char: str) -> str:
        return "".join([CHARACTERS[byte] for byte in char.encode()])


@lru_cache(maxsize=16)
def _pattern(ranges: tuple[tuple[int, int], ...]) -> re.Pattern[str]:
    return re.compile(one_of(ranges))


@lru_cache(maxsize=1)
def _capitals() -> Ranges:
    """The characters with a lowercase letter; all are in the first two planes."""
    points = np.delete(np.arange(0x20000, dtype="<u4"), 0x130)  # which becomes two characters
    text = points.tobytes().decode("utf-32-le", "surrogatepass").lower()
    small = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    capitals = {"\u0130", *lower_case_pairs(), *map(chr, points[small != points].tolist())}
    return ranges_of_characters(capitals)
