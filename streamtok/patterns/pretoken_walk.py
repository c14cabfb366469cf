"""Cuts a text that arrives in chunks into pre-tokens, in Python: for what must know their ends.

The core's scanner does the same for whole encodings. This is `Automaton.findall` with a state.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np

from .automaton import Automaton

__all__ = ["BEGIN", "PretokenWalk", "WalkState", "extended", "rope_of"]

# (the open pre-token as a rope, the state of the automaton, where it could end last)
WalkState: TypeAlias = "tuple[tuple[str, ...], int, int]"
BEGIN: WalkState = ((), 1, 0)


class PretokenWalk:
    """The pre-tokens of one automaton. Immutable."""

    def __init__(self, automaton: Automaton) -> None:
        self._transitions: list[list[int]] = automaton.transitions.tolist()
        self._accepts: list[list[int]] = automaton.accepts.tolist()
        self._at_end = automaton.n_classes
        self._class_of = automaton.class_of
        self._classes = {chr(point): automaton.class_of(point) for point in range(128)}
        self._begins = None if automaton.begins.all() else _one_that_begins(automaton)

    def feed(
        self, state: WalkState, text: str, final: bool
    ) -> tuple[WalkState, list[tuple[str, bool]]]:
        """The next state, and what has become certain: stretches, and whether each is a pre-token.

        What is no pre-token is left out by the pattern: several characters in a row, maybe. Over
        any cutting of a text, the stretches joined are the text.
        """
        rope, now, accepted = state
        start = -sum(map(len, rope))  # of the open pre-token, in `text`
        position = 0
        found: list[tuple[str, bool]] = []
        while True:
            if self._begins is not None and start == position:
                first = self._begins.search(text, position)
                position = first.start() if first else len(text)
                if position > start:
                    found.append((text[start:position], False))
                    start = position
            following = 1
            while position < len(text):
                kind = self._class(text[position])
                if self._accepts[now][kind]:
                    accepted = position - start
                following = self._transitions[now][kind]
                if not following:
                    break
                now = following
                position += 1
            if following:
                if not final or start == len(text):
                    break
                if self._accepts[now][self._at_end]:
                    accepted = len(text) - start
            if rope and accepted < -start:  # what follows it has been walked over, too
                text = "".join(rope) + text
                start = 0
                rope = ()
            end = start + (accepted or 1)
            stretch = text[max(start, 0) : end] if start >= 0 else "".join(rope) + text[:end]
            found.append((stretch, accepted > 0))
            rope = ()
            start = position = end
            now, accepted = 1, 0
        if final:
            return BEGIN, found
        return (extended(rope, text[max(start, 0) :]), now, accepted), found

    def check_state(self, value: Any) -> WalkState:
        """The state that a parsed JSON value stands for. Raises ValueError if there is none."""
        if not isinstance(value, (list, tuple)) or len(value) != 3:
            raise ValueError("expected an open pre-token, and where its automaton stands")
        rope, now, accepted = value
        rope = rope_of(rope)
        again, found = self.feed(BEGIN, "".join(rope), False)
        if found or [type(now), type(accepted)] != [int, int] or again[1:] != (now, accepted):
            raise ValueError("expected the beginning of one pre-token")
        return rope, now, accepted

    def _class(self, char: str) -> int:
        known = self._classes.get(char)
        if known is None:
            known = self._class_of(ord(char))
            if len(self._classes) < 1 << 16:
                self._classes[char] = known
        return known


def _one_that_begins(automaton: Automaton) -> re.Pattern[str]:
    """What finds a character that a pre-token can begin with."""
    can_begin = automaton.begins[automaton.class_blocks[automaton.class_pages]].ravel()
    edges = np.flatnonzero(np.diff(can_begin, prepend=False, append=False)).tolist()
    ranges = [
        rf"\U{low:08x}-\U{high - 1:08x}" for low, high in zip(edges[::2], edges[1::2], strict=True)
    ]
    return re.compile(f"[{''.join(ranges)}]" if ranges else r"(?!)")


def rope_of(value: Any) -> tuple[str, ...]:
    """A rope from its JSON. Raises ValueError if it is none."""
    if not isinstance(value, (list, tuple)) or not all(type(part) is str for part in value):
        raise ValueError("expected the strings that wait")
    return tuple(value)


def extended(rope: tuple[str, ...], text: str) -> tuple[str, ...]:
    """`rope` with `text` after it, in pieces each of which is longer than twice the next."""
    if not text:
        return rope
    pieces = list(rope)
    while pieces and len(pieces[-1]) <= 2 * len(text):
        text = pieces.pop() + text
    return (*pieces, text)
