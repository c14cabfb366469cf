"""The step that does what SentencePiece's `remove_extra_whitespaces` does, and puts its space.

Spaces at the beginning go, and each run of spaces becomes one. At the end, spaces go, and U+2581,
too. Behind that, U+2581 becomes a space: it stands for one, but a run does not go on over it. A
space is put before the first stretch of a stream if anything is left of it.

In a stream, spaces wait as long as they may be the last ones.
"""

from __future__ import annotations

import re

from .growth import Growth
from .step import BEGIN, END, FIRST, Blocks, Interest, Step

__all__ = ["JoinedSpaces"]

_MARK = "\u2581"
_BLANKS = " " + _MARK
_RUN = re.compile("  +")
_INSIDE, _AT_LEFT, _PUTS = range(3)


class JoinedSpaces(Step):
    """Extra spaces go, as in SentencePiece; puts_space: one is put before the first stretch."""

    __slots__ = ("contexts", "growth", "puts_space", "spec")
    waits = frozenset(_BLANKS)

    def __init__(self, puts_space: bool) -> None:
        self.puts_space = puts_space
        self.spec = ("JoinedSpaces", puts_space)
        self.contexts = 2 + puts_space
        self.growth = Growth(None, (_MARK, " "), " " if puts_space else "")

    def interest(self) -> Interest:
        mark, space = (ord(_MARK), ord(_MARK)), (32, 32)
        return Interest(
            [mark], [mark, space], [mark, space], at_begin=True, looks_at_begin=True,
            drops_at_begin=True, at_end=True,
        )  # fmt: skip

    def apply(self, text: str, where: int) -> str:
        if where & BEGIN:
            text = text.lstrip(" ")
        if where & END:
            text = text.rstrip(_BLANKS)
        text = _RUN.sub(" ", text).replace(_MARK, " ")
        return " " + text if text and self.puts_space and where & FIRST else text

    def begin(self, is_first: bool) -> int:
        """See `Step`. Whether there was text yet, and if not, whether a space is put before it."""
        return _PUTS if is_first and self.puts_space else _AT_LEFT

    def change(self, context: int, text: str, final: bool, seen: int) -> tuple[int, Blocks]:
        blocks: Blocks = []
        if context != _INSIDE:
            rest = text.lstrip(" ")
            if len(rest) < len(text):
                blocks.append(("", text[: len(text) - len(rest)]))
            text = rest
        kept = text.rstrip(_BLANKS)
        if kept:
            if context == _PUTS:
                blocks.append((" ", ""))
            _join(kept, blocks)
            context = _INSIDE
        if final and len(kept) < len(text):
            blocks.append(("", text[len(kept) :]))
        return context, blocks


def _join(text: str, blocks: Blocks) -> None:
    """Add the blocks of a text that does not end with a space."""
    done = 0
    for run in _RUN.finditer(text):
        if run.start() > done:
            part = text[done : run.start()]
            blocks.append((part.replace(_MARK, " "), part))
        blocks.append((" ", run[0]))
        done = run.end()
    part = text[done:]
    blocks.append((part.replace(_MARK, " "), part))
