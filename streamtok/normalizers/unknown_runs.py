"""The step that makes one character of each run of unknown ones, as SentencePiece makes one id.

A run needs not wait: its first character becomes the one for it, and the rest is left out.
"""

from __future__ import annotations

import re
from typing import Any

from .char_sets import one_of
from .growth import Growth, n_bytes
from .step import Blocks, Interest, whole_block

__all__ = ["UnknownRuns"]


class UnknownRuns:
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

    def begin(self, is_first: bool) -> bool:
        """See `Step`. The state is whether the text before ends in a run."""
        return False

    def feed(self, state: bool, text: str, final: bool) -> tuple[bool, Blocks]:
        blocks: Blocks = []
        done = 0
        for run in self._run.finditer(text):
            start, end = run.span()
            if start > done:
                blocks.append((text[done:start],) * 2)
            if start == 0 and state:
                blocks.append(("", run[0]))
            else:
                blocks += whole_block(self.unknown, run[0])
            done = end
        if done < len(text):
            blocks.append((text[done:],) * 2)
        if text:
            state = done == len(text)
        return state and not final, blocks

    def held(self, state: bool) -> str:
        return ""

    def check_state(self, value: Any) -> bool:
        if type(value) is not bool:
            raise ValueError("expected whether the text before ends in a run of unknown characters")
        return value
