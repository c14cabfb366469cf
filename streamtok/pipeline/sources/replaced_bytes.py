"""Counts the bytes of texts that are not UTF-8, which "replace" makes U+FFFD."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from .splitters import Documents, Part

__all__ = ["ReplacedBytes", "count_replaced"]


def count_replaced(data: bytes | memoryview) -> int:
    """How many bytes of a whole text are not UTF-8."""
    return _escapes(str(data, "utf-8", "surrogateescape"))


class ReplacedBytes:
    """Counts them in documents that arrive in parts. count: of the parts that were added."""

    def __init__(self) -> None:
        self.count = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def add(self, parts: Iterable[Part]) -> None:
        """Count the bytes of some parts; those at the end of an open document may still wait."""
        for part in parts:
            if not isinstance(part, Documents):
                text, is_end = part
                if isinstance(text, bytes):
                    self.count += _escapes(self._decoder.decode(text, is_end))
                continue
            if count_replaced(part.data):  # or only the delimiter is not UTF-8
                self.count += sum(map(count_replaced, part.texts()))


def _escapes(text: str) -> int:
    if text.isascii():
        return 0
    try:
        text.encode()
        return 0
    except UnicodeEncodeError:
        return sum("\udc80" <= one <= "\udcff" for one in text)
