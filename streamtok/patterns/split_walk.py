"""One split of a text that arrives in chunks, in Python; so any sequence of splits can be followed.

`sequence.py` makes one automaton of splits, which is fast, but not of all. Here each split cuts the
pre-tokens of the one before as whole texts. Only the first one sees a text that is not complete: it
holds what a later match may still join (`splits.py` has the behaviors).
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .pattern import Pattern
from .pretoken_walk import BEGIN as WALK_BEGIN
from .pretoken_walk import PretokenWalk, WalkState, extended, rope_of

__all__ = ["BEGIN", "SplitState", "SplitWalk"]

_NONE, _GAP, _MATCH = range(3)

# (the search for matches, the open piece as a rope, whether that ends with a gap or a match)
SplitState: TypeAlias = "tuple[WalkState, tuple[str, ...], int]"
BEGIN: SplitState = (WALK_BEGIN, (), _NONE)


class SplitWalk:
    """The pieces of one split. Immutable."""

    def __init__(self, pattern: str, behavior: str) -> None:
        """Raises PatternError."""
        self._walk = PretokenWalk(Pattern.compile(pattern))
        self._behavior = behavior

    def cut(self, text: str) -> list[str]:
        """The pre-tokens of a whole text."""
        return [piece for piece, is_kept in self.feed(BEGIN, text, True)[1] if is_kept]

    def feed(
        self, state: SplitState, text: str, final: bool
    ) -> tuple[SplitState, list[tuple[str, bool]]]:
        """The next state, and what has become certain: pieces, and whether each is a pre-token.

        Over any cutting of a text, the pieces joined are the text.
        """
        walk, rope, kind = state
        walk, items = self._walk.feed(walk, text, final)
        pieces: list[tuple[str, bool]] = []
        for item, is_match in items:
            if rope and self._ends(kind, is_match):
                pieces.append(("".join(rope), self._keeps(kind)))
                rope = ()
            rope, kind = extended(rope, item), _MATCH if is_match else _GAP
            if is_match and self._behavior in ("isolated", "removed", "only", "with previous"):
                pieces.append(("".join(rope), self._keeps(kind)))
                rope, kind = (), _NONE
        if final and rope:
            pieces.append(("".join(rope), self._keeps(kind)))
        return (BEGIN if final else (walk, rope, kind)), pieces

    def check_state(self, value: Any) -> SplitState:
        """The state that a parsed JSON value stands for. Raises ValueError if there is none."""
        if not isinstance(value, (list, tuple)) or len(value) != 3:
            raise ValueError("expected the search for matches, and a piece that is open")
        walk, rope, kind = self._walk.check_state(value[0]), rope_of(value[1]), value[2]
        if type(kind) is not int or kind not in ((_GAP, _MATCH) if rope else (_NONE,)):
            raise ValueError("expected whether a gap or a match is open")
        return walk, rope, kind

    def held(self, state: SplitState) -> str:
        """What waits."""
        return "".join((*state[1], *state[0][0]))

    def _ends(self, kind: int, is_match: bool) -> bool:
        """Whether an open piece, which ends with a gap or a match, ends before the next item."""
        if self._behavior == "contiguous":
            return (kind == _MATCH) != is_match
        if self._behavior == "with previous":
            return False
        return is_match

    def _keeps(self, kind: int) -> bool:
        """Whether a piece is a pre-token."""
        return self._behavior not in (("removed",) if kind == _MATCH else ("only",))
