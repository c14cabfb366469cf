"""The step for words between blanks that each get a mark before them, as T5 and XLM-R have them.

In `tokenizers` these are two pre-tokenizers: WhitespaceSplit, and behind it Metaspace. The blanks
go, so the marks alone tell where words begin.
"""

from __future__ import annotations

import re
from typing import Any

from .edges import BLANKS
from .growth import Growth, n_bytes
from .step import Blocks

__all__ = ["MarkedWords"]

_PARTS = re.compile(f"[{BLANKS}]+|[^{BLANKS}]+")


class MarkedWords:
    """Blanks go, and each word that does not begin with `mark` gets it before it."""

    __slots__ = ("growth", "mark", "spec")

    def __init__(self, mark: str) -> None:
        if len(mark) != 1 or mark in BLANKS:
            raise ValueError(f"mark must be one character that is no blank, not {mark!r}")
        self.mark = mark
        self.spec = ("MarkedWords", mark)
        self.growth = Growth(1.0 + n_bytes(mark))

    def interest(self) -> None:
        """See `Step`."""

    def normalize(self, text: str, is_first: bool) -> str:
        """See `Step`."""
        return "".join([block[0] for block in self.feed(False, text, True)[1]])

    def leaves(self, text: str, is_first: bool) -> bool:
        """See `Step`."""
        return not text or (text[0] == self.mark and not any(blank in text for blank in BLANKS))

    def begin(self, is_first: bool) -> bool:
        """See `Step`. The state is whether the text so far ends in a word."""
        return False

    def feed(self, state: bool, text: str, final: bool) -> tuple[bool, Blocks]:
        """See `Step`."""
        blocks: Blocks = []
        for part in _PARTS.findall(text):
            if part[0] in BLANKS:
                blocks.append(("", part))
                state = False
                continue
            if not state and part[0] != self.mark:
                # As in tokenizers, the mark stands for the first character, too.
                blocks += [(self.mark + part[0], ""), ("", part[0])]
                part = part[1:]
            if part:
                blocks.append((part, part))
            state = True
        return state and not final, blocks

    def held(self, state: bool) -> str:
        """See `Step`."""
        return ""

    def check_state(self, value: Any) -> bool:
        """See `Step`."""
        if type(value) is not bool:
            raise ValueError("expected whether the text before ends in a word")
        return value
