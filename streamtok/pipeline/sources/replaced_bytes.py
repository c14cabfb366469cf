"""Counts the bytes of texts that are not UTF-8, which "replace" makes U+FFFD."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

from .splitters import Documents, Part

_BAD = re.compile("[\udc80-\udcff]")


class ReplacedBytes:
    """Counts them in documents that arrive in parts. count: of the parts that were added."""

    def __init__(self) -> None:
        self.count = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def add(self, parts: Iterable[Part]) -> None:
        """Count the bytes of some parts; those at the end of an open document may still wait."""
        for part in parts:
            if isinstance(part, Documents):
                if count_replaced(part.data):  # or only the delimiter is not UTF-8
                    self.count += sum(map(count_replaced, part.texts()))
            elif isinstance(part[0], bytes):
                self.count += _surrogates(self._decoder.decode(part[0], part[1]))


def count_replaced(data: bytes | memoryview) -> int:
    """How many bytes of a whole text are not UTF-8."""
    return _surrogates(bytes(data).decode("utf-8", "surrogateescape"))


def _surrogates(text: str) -> int:
    try:
        text.encode()  # several times as fast as a search
    except UnicodeEncodeError:
        return len(_BAD.findall(text))
    return 0
