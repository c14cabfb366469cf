"""Counts the bytes of texts that are not UTF-8, which "replace" makes U+FFFD."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

from ..._core.encode import has_surrogate
from .splitters import Documents, Part

_BAD = re.compile("[\udc80-\udcff]+")


class _BadBytes:
    """Counts them in a text that comes in blocks."""

    def __init__(self) -> None:
        self.count = 0
        self._begun = b""  # a character that is not complete

    def add(self, data: bytes, final: bool = False) -> None:
        """Take the next bytes; those of a character at the end may still wait."""
        data = self._begun + data
        text, size = codecs.utf_8_decode(data, "surrogateescape", final)
        self._begun = data[size:]
        if has_surrogate(text, 0, len(text)):  # several times as fast as a search
            self.count += sum(map(len, _BAD.findall(text)))


def count_replaced(data: bytes | memoryview) -> int:
    """How many bytes of a whole text are not UTF-8."""
    bad = _BadBytes()
    bad.add(bytes(data), True)
    return bad.count


class ReplacedBytes:
    """Counts them in documents that arrive in parts. count: of the parts that were added."""

    def __init__(self) -> None:
        self._whole = 0  # in whole documents
        self._bad = _BadBytes()

    @property
    def count(self) -> int:
        return self._whole + self._bad.count

    def add(self, parts: Iterable[Part]) -> None:
        """Count the bytes of some parts; those at the end of an open document may still wait."""
        for part in parts:
            if isinstance(part, Documents):
                if count_replaced(part.data):  # or only the delimiter is not UTF-8
                    self._whole += sum(map(count_replaced, part.texts()))
            elif isinstance(part[0], bytes):
                self._bad.add(part[0], part[1])
