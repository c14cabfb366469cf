"""The step that makes one character of each run of unknown ones, as SentencePiece makes one id."""

from __future__ import annotations

import re

from .char_sets import one_of
from .growth import Growth, n_bytes
from .step import Interest, Step

__all__ = ["UnknownRuns"]


class UnknownRuns(Step):
    """Each run of characters that are not in `known` becomes `unknown`, which is not in it."""

    __slots__ = ("_run", "_unknown", "growth", "spec", "unknown")

    def __init__(self, known: str, unknown: str) -> None:
        if len(unknown) != 1 or unknown in known:
            raise ValueError(f"expected an unknown character, found {unknown!r}")
        self.unknown = unknown
        self.spec = ("UnknownRuns", known, unknown)
        self.growth = Growth(n_bytes(unknown))
        ranges = []
        low = 0
        for point in sorted({ord(character) for character in known}):
            if point > low:
                ranges.append((low, point - 1))
            low = point + 1
        if low <= 0x10FFFF:
            ranges.append((low, 0x10FFFF))
        self._unknown = ranges
        self._run = re.compile(f"{one_of(ranges)}+")

    def interest(self) -> Interest:
        return Interest(self._unknown, self._unknown, self._unknown)

    def apply(self, text: str, where: int) -> str:
        return self._run.sub(self.unknown, text)
