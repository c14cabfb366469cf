"""The step that does what SentencePiece's `remove_extra_whitespaces` does, and puts its space.

Spaces at the beginning go, and each run of spaces becomes one. At the end, spaces go, and U+2581,
too. Behind that, U+2581 becomes a space: it stands for one, but a run does not go on over it. A
space is put before the first stretch of a stream if anything is left of it.

In a stream, spaces wait as long as they may be the last ones.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from .growth import Growth
from .rope import Rope, extend_rope, rope_from_json
from .step import Blocks, Interest

__all__ = ["JoinedSpaces"]

_MARK = "\u2581"
_BLANKS = " " + _MARK
_RUN = re.compile("  +")
_INSIDE, _AT_LEFT, _PUTS = range(3)
_State: TypeAlias = "tuple[int, Rope]"


class JoinedSpaces:
    """Extra spaces go, as in SentencePiece; puts_space: one is put before the first stretch."""

    __slots__ = ("growth", "puts_space", "spec")

    def __init__(self, puts_space: bool) -> None:
        self.puts_space = puts_space
        self.spec = ("JoinedSpaces", puts_space)
        self.growth = Growth(None, (_MARK, " "), " " if puts_space else "")

    def interest(self) -> Interest:
        mark, space = (ord(_MARK), ord(_MARK)), (32, 32)
        return Interest(
            [mark], [mark, space], [mark, space], at_begin=True, looks_at_begin=True,
            drops_at_begin=True, at_end=True,
        )  # fmt: skip

    def begin(self, is_first: bool) -> _State:
        """See `Step`. The state is whether there was text yet, and if not, whether a space is put
        before it; and the spaces that wait.
        """
        return _PUTS if is_first and self.puts_space else _AT_LEFT, ()

    def feed(self, state: _State, text: str, final: bool) -> tuple[_State, Blocks]:
        place, rope = state
        blocks: Blocks = []
        if place != _INSIDE and not rope:
            rest = text.lstrip(" ")
            if len(rest) < len(text):
                blocks.append(("", text[: len(text) - len(rest)]))
            text = rest
        kept = text.rstrip(_BLANKS)
        if kept:
            text = text[len(kept) :]
            if place == _PUTS:
                blocks.append((" ", ""))
            _join("".join((*rope, kept)), blocks)
            place, rope = _INSIDE, ()
        rope = extend_rope(rope, text)
        if not final:
            return (place, rope), blocks
        if rope:
            blocks.append(("", "".join(rope)))
        return (place, ()), blocks

    def held(self, state: _State) -> str:
        return "".join(state[1])

    def check_state(self, value: Any) -> _State:
        if not isinstance(value, (list, tuple)) or len(value) != 2 or type(value[0]) is not int:
            raise ValueError("expected the step's position, and the spaces that wait")
        place, rope = value[0], rope_from_json(value[1])
        if place not in ((_INSIDE, _AT_LEFT, _PUTS) if self.puts_space else (_INSIDE, _AT_LEFT)):
            raise ValueError("expected a position in the text")
        blanks = "".join(rope)
        if blanks.strip(_BLANKS) or (place != _INSIDE and blanks.startswith(" ")):
            raise ValueError("expected only spaces to wait, and none at the beginning")
        return place, rope


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
