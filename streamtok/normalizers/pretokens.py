"""Pre-tokens cut in Python: what no automaton follows, or what changes each pre-token by itself.

*Stages* cut a text and change what is cut, one after the other. `Pretokens` does that for models of
pieces: after each pre-token it puts a border, at which the pattern cuts. `Symbols` does it for
merges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..patterns.split_walk import BEGIN, SplitWalk
from .characters import ByteLetters
from .edges import MetaspaceText, PrefixSpace
from .growth import Growth, growth_of, n_bytes
from .step import Blocks, State, Step, text_of, whole_block

__all__ = ["Pretokens", "later_stage", "step_of_stage", "walk_of"]


class Pretokens:
    """A border after each pre-token; what is dropped is left out."""

    __slots__ = ("_border", "_last", "_later", "_other", "_walk", "_walks", "growth", "spec")

    def __init__(self, border: str, other: str, stages: tuple[tuple[str, ...], ...]) -> None:
        """border: the character; other: what it becomes where the text has it. stages: ("Split",
        pattern, behavior), and after the first one also ("MetaspaceText", …), ("PrefixSpace",) and
        ("ByteLetters",), which change each pre-token.
        """
        if len(border) != 1 or len(other) != 1 or n_bytes(other) > n_bytes(border):
            raise ValueError(f"expected two characters, found {border!r} and {other!r}")
        if not stages or stages[0][0] != "Split":
            raise ValueError("the first stage must be one that cuts")
        self.spec = ("Pretokens", border, other, stages)
        self._border, self._other = border, other
        self._walk = walk_of(*stages[0][1:])
        cuts = [stage[0] == "Split" for stage in (*stages, ("", ""))].index(False)
        self._walks = [walk_of(*stage[1:]) for stage in stages[1:cuts]]
        self._later = [later_stage(*stage) for stage in stages[cuts:]]
        self._last = step_of_stage(stages[cuts]) if len(self._later) == 1 else None
        steps = [step.growth for step in map(step_of_stage, stages[1:]) if step is not None]
        self.growth = Growth(growth_of(steps) + n_bytes(border))

    def interest(self) -> None:
        """See `Step`."""

    def begin(self, is_first: bool) -> State:
        """See `Step`. The state is that of the walk along the pre-tokens of the first stage."""
        return BEGIN

    def feed(self, state: State, text: str, final: bool) -> tuple[State, Blocks]:
        blocks: Blocks = []
        state, stretches = self._walk.feed(state, text, final)
        for stretch, is_pretoken in stretches:
            pieces = [(stretch, is_pretoken)]
            for walk in self._walks:
                pieces = [part for piece in pieces for part in _parts(walk, *piece)]
            for piece, is_pretoken in pieces:
                blocks += self._blocks(piece) if is_pretoken else [("", piece)]
        return state, blocks

    def _blocks(self, piece: str) -> Blocks:
        """Those of a pre-token of the stages before the first that changes any."""
        border, other = self._border, self._other
        if not self._later:
            return [(piece.replace(border, other), piece), (border, "")]
        if self._last is not None:
            changed = self._last.feed(self._last.begin(False), piece, True)[1]
            return [*((text.replace(border, other), part) for text, part in changed), (border, "")]
        pretokens = [piece]
        for stage in self._later:
            pretokens = [part for pretoken in pretokens for part in stage(pretoken)]
        text = "".join([part.replace(border, other) + border for part in pretokens])
        return whole_block(text, piece)

    def held(self, state: State) -> str:
        return self._walk.held(state)

    def check_state(self, value: Any) -> State:
        return self._walk.check_state(value)


def _parts(walk: SplitWalk, piece: str, is_pretoken: bool) -> list[tuple[str, bool]]:
    """What a split makes of a piece, and whether each is a pre-token; what is dropped stays so."""
    return walk.feed(BEGIN, piece, True)[1] if is_pretoken else [(piece, False)]


@lru_cache(maxsize=64)
def walk_of(pattern: str, behavior: str) -> SplitWalk:
    """The walk along the pre-tokens of a split."""
    return SplitWalk(pattern, behavior)


def later_stage(kind: str, *settings: str) -> Callable[[str], list[str]]:
    """What a stage that is not the first makes of a pre-token."""
    step = step_of_stage((kind, *settings))
    if step is None:
        return walk_of(*settings).cut
    return lambda pretoken: [text_of(step.feed(step.begin(False), pretoken, True)[1])]


def step_of_stage(stage: tuple[str, ...]) -> Step | None:
    """The step that a stage does to each pre-token; None for one that cuts."""
    kind, *settings = stage
    if kind == "Split":
        return None
    if kind == "ByteLetters":
        return ByteLetters()
    return PrefixSpace() if kind == "PrefixSpace" else MetaspaceText(*settings)
