"""What more there is to know of a class of windows than its number: three flags, off the DFA.

Windows (`windows.py`) see four characters. Two things that they leave open can be told by looking a
little farther, with one bit for each class of characters:

- *Runs.* A row of spaces begins a pre-token in some patterns unless a newline comes after it. The
  window at its beginning sees only spaces; the character that ends the run decides. RUN is a class
  whose rows are worth looking along, ENDS_RUN a character that, coming after such a row, makes sure
  that a pre-token begins where the window was open. Sure means: for every state that the walk can
  be in before the window, and every length of the row.
- *Triggers that do nothing.* An apostrophe after a blank is followed by no contraction. HARMLESS is
  a character right before the trigger after which followers are like all other letters, in every
  state; then the pair opens no windows.

Nothing here depends on what a pattern is for, and a pattern for which nothing can be shown has no
flags.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from .automaton import Automaton

__all__ = ["ENDS_RUN", "HARMLESS", "RUN", "WindowFlags"]

ENDS_RUN, RUN, HARMLESS = 16, 32, 64  # added to the number of the class
_BEFORE, _HERE, _LATER, _NEVER = range(4)  # where a pre-token could end last, seen from here

# A pre-token that holds the first character of the window: its state, where it could end last; then
# the same of one that begins before the second. In state 0 it has ended there.
_Walks = tuple[int, int, int, int]


class WindowFlags:
    """Finds the flags of one automaton.

    states: all that the walk can be in where windows hold. members: for each class of windows, a
    class of the automaton that is like it.
    """

    def __init__(self, automaton: Automaton, states: Iterable[int], members: list[int]) -> None:
        self._transitions: list[list[int]] = automaton.transitions.tolist()
        self._accepts: list[list[int]] = automaton.accepts.tolist()
        self._settled: list[int] = [0, *automaton.settled.tolist()[1:]]
        self._states = sorted({1, *states})
        self._members = members

    def runs(self, is_open: npt.NDArray[np.bool_], never: set[int]) -> tuple[list[int], set[int]]:
        """Classes with RUN, and those with ENDS_RUN: what is sure after all of the former.

        is_open: bool [k, k, k, k], the windows that are undecided. never: classes without RUN.
        """
        ends: dict[int, set[int]] = {}
        for x in range(len(self._members)):
            lefts = np.argwhere(is_open[:, :, x, x]).tolist()
            if lefts and x not in never:
                walks = self._along(lefts, x)
                found = {
                    e
                    for e in range(len(self._members))
                    if e != x and all(self._is_sure(walk, self._members[e]) for walk in walks)
                }
                if found:
                    ends[x] = found
        best: list[int] = []
        common: set[int] = set()
        for x in sorted(ends, key=lambda x: -len(ends[x])):
            both = common & ends[x] if best else ends[x]
            if 2 * len(both) >= len(common):  # rows of fewer kinds, rather than few ends
                best, common = [*best, x], both
        return best, common

    def harmless(
        self, ascii_classes: list[int], trigger: int, followers: dict[int, int]
    ) -> set[int]:
        """Classes of the automaton after which the trigger does nothing: of those of characters."""

        def tells(state: int) -> bool:
            """Whether a follower differs here from the letter that stands for it."""
            return any(
                self._row(state, f) != self._row(state, like) for f, like in followers.items()
            )

        fresh_tells = tells(self._transitions[1][trigger])

        def matters(before: int) -> bool:
            for start in self._states:
                state = self._transitions[start][before]
                following = self._transitions[state][trigger] if state else 0
                if following and tells(following):
                    return True
                # Another pre-token may begin with the trigger, unless this one surely holds it.
                ends = state and self._accepts[state][trigger] and not self._settled[following]
                if ends and fresh_tells:
                    return True
            return False

        return {number for number in set(ascii_classes) if not matters(number)}

    def _row(self, state: int, number: int) -> tuple[int, int]:
        return self._transitions[state][number], self._accepts[state][number]

    def _along(self, lefts: list[list[int]], x: int) -> set[_Walks]:
        """All that can be where a row of two or more ends, which began after such a left half."""
        at_once = set()
        for a, b in lefts:
            first, second, row = (self._members[number] for number in (a, b, x))
            fresh = self._transitions[1][second]
            fresh_end = _HERE if fresh and self._accepts[fresh][row] else _NEVER
            fresh = self._transitions[fresh][row]
            for start in self._states:
                state = self._transitions[start][first]
                if not state:
                    continue
                end = _BEFORE if self._accepts[state][second] else _NEVER
                state = self._transitions[state][second]
                if state and self._accepts[state][row]:
                    end = _HERE
                at_once.add((self._transitions[state][row], end, fresh, fresh_end))
        found: set[_Walks] = set()
        new = {self._after(walk, self._members[x]) for walk in at_once}
        while new:
            found |= new
            new = {self._after(walk, self._members[x]) for walk in new} - found
        return found

    def _after(self, walk: _Walks, number: int) -> _Walks:
        """One more character of the class, which is after the position."""
        state, end, fresh, fresh_end = walk
        if state and self._accepts[state][number]:
            end = _LATER
        if fresh and self._accepts[fresh][number]:
            fresh_end = _LATER
        return self._transitions[state][number], end, self._transitions[fresh][number], fresh_end

    def _is_sure(self, walk: _Walks, number: int) -> bool:
        """Whether this character settles that a pre-token begins at the position."""
        state, end, fresh, fresh_end = self._after(walk, number)
        if state:
            return False
        if end == _BEFORE:  # the other one began where the first ended
            return fresh == 0 and fresh_end == _HERE
        # NEVER: nothing could be in this state before the window.
        return end in (_HERE, _NEVER)
