"""Three flags for the classes of windows, derived from the DFA.

Windows (`windows.py`) see four characters. Two cases that they leave undecided can be settled by
looking a little farther, with a few bits for each class of characters:

- *Runs.* In some patterns, a run of spaces begins a pre-token unless a newline follows the run. The
  window at the start of the run sees only spaces; the character that ends the run decides. RUN
  flags a class whose runs are worth scanning. ENDS_RUN flags a class that, directly after such a
  run, guarantees that a pre-token begins where the window was undecided. This holds for every state
  that the walk can be in before the window, and for every length of the run.
- *Triggers without effect.* An apostrophe after a space begins no contraction. HARMLESS flags a
  class directly after which the trigger has no effect: in every state, followers then act like all
  other letters, so the pair leaves no window undecided.

Flags are proved from the automaton alone, for any pattern. Without a proof there is no flag.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from .automaton import Automaton

__all__ = ["ENDS_RUN", "HARMLESS", "RUN", "WindowFlags"]

ENDS_RUN, RUN, HARMLESS = 16, 32, 64  # added to the number of the class
_BEFORE, _HERE, _LATER, _NEVER = range(4)  # last possible end, relative to the middle of the window

# The state and last possible end of the pre-token that holds the first character of the window;
# then those of a pre-token that begins with the second. A pre-token in state 0 has ended.
_Walks = tuple[int, int, int, int]


class WindowFlags:
    """Finds the flags of one automaton.

    states: all states that the walk can be in where windows are valid. members: for each class of
    windows, a class of the automaton that behaves like it.
    """

    def __init__(self, automaton: Automaton, states: Iterable[int], members: list[int]) -> None:
        self._transitions: list[list[int]] = automaton.transitions.tolist()
        self._accepts: list[list[int]] = automaton.accepts.tolist()
        self._settled: list[int] = automaton.settled.tolist()
        self._states = sorted({1, *states})
        self._members = members

    def runs(self, is_open: npt.NDArray[np.bool_], never: set[int]) -> tuple[list[int], set[int]]:
        """The classes to flag RUN and those to flag ENDS_RUN, which settle runs of all RUN classes.

        is_open: bool [k, k, k, k], the undecided windows. never: classes that must not be RUN.
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
            if 2 * len(both) >= len(common):  # prefer few RUN classes to few ENDS_RUN classes
                best, common = [*best, x], both
        return best, common

    def harmless(
        self, ascii_classes: list[int], trigger: int, followers: dict[int, int]
    ) -> set[int]:
        """The classes in `ascii_classes` directly after which the trigger has no effect."""

        def tells(state: int) -> bool:
            """Whether some follower differs in this state from the class that it is like."""
            return any(
                self._row(state, f) != self._row(state, like) for f, like in followers.items()
            )

        fresh_tells = tells(self._transitions[1][trigger])

        def matters(before: int) -> bool:
            for start in self._states:
                state = self._transitions[start][before]
                following = self._transitions[state][trigger]
                if following and tells(following):
                    return True
                # A pre-token may begin with the trigger, unless the one before surely includes it.
                ends = self._accepts[state][trigger] and not self._settled[following]
                if ends and fresh_tells:
                    return True
            return False

        return {number for number in set(ascii_classes) if not matters(number)}

    def _row(self, state: int, number: int) -> tuple[int, int]:
        return self._transitions[state][number], self._accepts[state][number]

    def _along(self, lefts: list[list[int]], x: int) -> set[_Walks]:
        """All walks possible after one of `lefts` and two or more characters of class x."""
        at_once = set()
        for a, b in lefts:
            first, second, row = (self._members[number] for number in (a, b, x))
            fresh = self._transitions[1][second]
            fresh_end = _HERE if self._accepts[fresh][row] else _NEVER
            fresh = self._transitions[fresh][row]
            for start in self._states:
                state = self._transitions[start][first]
                if not state:
                    continue
                end = _BEFORE if self._accepts[state][second] else _NEVER
                state = self._transitions[state][second]
                if self._accepts[state][row]:
                    end = _HERE
                at_once.add((self._transitions[state][row], end, fresh, fresh_end))
        found: set[_Walks] = set()
        new = {self._after(walk, self._members[x]) for walk in at_once}
        while new:
            found |= new
            new = {self._after(walk, self._members[x]) for walk in new} - found
        return found

    def _after(self, walk: _Walks, number: int) -> _Walks:
        """The walk after one more character of this class, to the right of the window's middle."""
        state, end, fresh, fresh_end = walk
        if self._accepts[state][number]:
            end = _LATER
        if self._accepts[fresh][number]:
            fresh_end = _LATER
        return self._transitions[state][number], end, self._transitions[fresh][number], fresh_end

    def _is_sure(self, walk: _Walks, number: int) -> bool:
        """Whether this class, after the walk, guarantees a pre-token start at the middle."""
        state, end, fresh, fresh_end = self._after(walk, number)
        if state:
            return False
        if end == _BEFORE:  # the second pre-token began where the first ended
            return fresh == 0 and fresh_end == _HERE
        # _NEVER: a contradiction, so the walk was not in this state before the window.
        return end in (_HERE, _NEVER)
