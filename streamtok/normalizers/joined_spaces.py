"""The step that does what SentencePiece's `remove_extra_whitespaces` does.

Spaces at the beginning go, and each run of spaces becomes one. At the end, spaces go, and U+2581,
too. Behind that, U+2581 becomes a space: it stands for one, but a run does not go on over it.
"""

from __future__ import annotations

import re

from .growth import Growth
from .step import BEGIN, END, Interest, Step

__all__ = ["JoinedSpaces"]

_MARK = "\u2581"
_BLANKS = " " + _MARK
_RUN = re.compile("  +")


class JoinedSpaces(Step):
    """Extra spaces go, as in SentencePiece."""

    __slots__ = ()
    spec = ("JoinedSpaces",)
    growth = Growth(None, (_MARK, " "))

    def interest(self) -> Interest:
        mark, space = (ord(_MARK), ord(_MARK)), (32, 32)
        return Interest([mark], [mark, space], [mark, space], at_begin=True, at_end=True)

    def apply(self, text: str, where: int) -> str:
        if where & BEGIN:
            text = text.lstrip(" ")
        if where & END:
            text = text.rstrip(_BLANKS)
        return _RUN.sub(" ", text).replace(_MARK, " ")
