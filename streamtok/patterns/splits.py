"""Automata for a split: its pattern's matches, the text between them, and its behavior.

Hugging Face's `Split` has a pattern and a *behavior*. The pattern cuts a text into matches and
*gaps*, the segments that no match covers; the behavior says which of these are pre-tokens:

- "isolated": each match and each gap;
- "with previous": a gap is joined with the match after it; otherwise as "isolated";
- "with next": a match is joined with the gap after it; otherwise as "isolated";
- "contiguous": matches without a gap between them are joined; otherwise as "isolated";
- "removed": only the gaps; the matches are dropped;
- "only": only the matches; the gaps are dropped.

Automata here are tables like `Pattern`'s, except that an acceptance has a number: KEEP or DROP, or
GAP or MATCH in intermediate steps. They cover every character. In the last step, dropped pre-tokens
become characters that no pre-token begins with, which the scanner skips one by one.

*Gaps.* A gap continues until a match begins. Whether a match begins with a character must follow
from that character alone, or from it and the next one, as in all patterns in use.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedPatternError
from .minimise import equivalent_states, minimised, surely_ending

__all__ = [
    "BEHAVIORS", "DROP", "KEEP", "Cutter", "Split", "cut_by", "ends_of", "is_definite", "refuse",
    "without_dropped",
]  # fmt: skip

BEHAVIORS = ("isolated", "with previous", "with next", "contiguous", "removed", "only")
KEEP, DROP = 1, 2
GAP, MATCH = 1, 2

Uint8 = npt.NDArray[np.uint8]
Uint16 = npt.NDArray[np.uint16]
Bools = npt.NDArray[np.bool_]


class Split(NamedTuple):
    """A pattern, and the behavior that says what to do with its matches."""

    pattern: str
    behavior: str = "isolated"


class Cutter(NamedTuple):
    """An automaton that covers every character, over a common alphabet."""

    moves: Uint16  # as `transitions`
    ends: Uint8  # as `accepts`, but with numbers


def refuse(construct: str, where: str) -> NoReturn:
    """Raise UnsupportedPatternError for a sequence of splits."""
    raise UnsupportedPatternError(
        f"a sequence of splits cannot be followed: {construct} ({where[:60]})",
        construct=construct,
        position=0,
    )


def cut_by(transitions: Uint16, accepts: Uint8, split: Split) -> Cutter:
    """The automaton of `split`, from the tables of its pattern."""
    whole = _with_gaps(transitions, accepts, split.pattern)
    if split.behavior in ("with previous", "with next", "contiguous"):
        whole = _joined(whole, split)
    gap, match = {"removed": (KEEP, DROP), "only": (DROP, KEEP)}.get(split.behavior, (KEEP, KEEP))
    return Cutter(*minimised(whole.moves, np.array([0, gap, match], np.uint8)[whole.ends]))


def _with_gaps(transitions: Uint16, accepts: Uint8, source: str) -> Cutter:
    """The automaton whose pre-tokens are the matches and the gaps between them."""
    n_states, n = transitions.shape
    accepting = accepts.astype(bool)
    if accepting[1].any():
        refuse("empty match", source)
    sure = surely_ending(transitions, accepts)
    firsts = sorted({0, *transitions[1].tolist()})  # states after one character
    is_gap = {}
    for state in firsts:
        ends = np.append(transitions[state] == 0, True) & ~accepting[state]
        open_ = ~ends[:n] & ~accepting[state, :n] & ~sure[transitions[state]]
        if state and open_.any():
            refuse("whether a match begins depends on more than the next character", source)
        is_gap[state] = ends if state else np.ones(n + 1, bool)
    # The new states are dead and start; then, for each of `firsts`, "one character read" and "one
    # character read after a gap, which it may continue". The old states follow them.
    read = {state: 2 + i for i, state in enumerate(firsts)}
    gap = {state: 2 + len(firsts) + i for i, state in enumerate(firsts)}
    old = 2 + 2 * len(firsts)
    moves = np.zeros((old + n_states, n), np.int64)
    ends_at = np.zeros((old + n_states, n + 1), np.uint8)
    moves[old:] = np.where(transitions > 0, transitions.astype(np.int64) + old, 0)
    ends_at[old:] = accepting * MATCH
    begins = transitions[1].tolist()
    moves[1] = [read[state] for state in begins]
    # After a gap: continue it if the next character may belong to it.
    onward = np.array([0 if not is_gap[state].any() else gap[state] for state in begins])
    for state in firsts:
        here = is_gap[state]
        for row in (read[state], gap[state]):
            moves[row] = np.where(here[:n], onward, 0)
            ends_at[row] = here * GAP
        if state:
            moves[read[state]] = np.where(here[:n], onward, moves[old + state])
            ends_at[read[state]] = np.where(here, GAP, accepting[state] * MATCH)
    return Cutter(moves.astype(np.uint16), ends_at)


def is_definite(cutter: Cutter) -> bool:
    """Whether the end of every pre-token is known as soon as the next character is."""
    live = cutter.ends[1:].astype(bool)
    n = cutter.moves.shape[1]
    return bool((live[:, :n] | (cutter.moves[1:] > 0)).all() and live[1:, n].all())


def _joined(whole: Cutter, split: Split) -> Cutter:
    """Join each match with its neighbour, as the behavior says.

    A state encodes whether the first part of the pre-token is complete, and the state of `whole` in
    the current part. The next part belongs to the same pre-token if the behavior joins the two.
    """
    whole = Cutter(*minimised(*whole))
    if not is_definite(whole):
        refuse(f"{split.behavior!r}, with a match whose end is known only later", split.pattern)
    moves, ends = whole
    n = moves.shape[1]
    first, then = {
        "with previous": (GAP, MATCH),
        "with next": (MATCH, GAP),
        "contiguous": (MATCH, MATCH),
    }[split.behavior]
    n_states = len(moves)
    # Old states are for the first part, new states above them for the second.
    table = np.zeros((2 * n_states, n), np.int64)
    found = np.zeros((2 * n_states, n + 1), np.uint8)
    second = moves[1].astype(np.int64) + n_states
    for state in range(1, n_states):
        stops = moves[state] == 0
        is_first = stops & (ends[state, :n] == first)
        table[state] = np.where(is_first, second, moves[state])
        found[state, :n] = stops * KEEP
        found[state, n] = KEEP if state > 1 else 0
        row = n_states + state
        is_then = stops & (ends[state, :n] == then)
        onward = np.where(is_then & (split.behavior == "contiguous"), second, 0)
        table[row] = np.where(stops, onward, moves[state].astype(np.int64) + n_states)
        found[row, :n] = is_then * KEEP
        found[row, n] = KEEP if ends[state, n] == then else 0
    return Cutter(table.astype(np.uint16), found)


def ends_of(cutter: Cutter) -> tuple[Bools, Bools]:
    """(can_keep, can_drop), for each state of a definite automaton: how its pre-token may end."""
    moves, ends = cutter
    n = moves.shape[1]

    def can_end(number: int) -> Bools:
        ending = ((moves == 0) & (ends[:, :n] == number)).any(axis=1)
        return _leading_to(ending | (ends[:, n] == number), moves)

    return can_end(KEEP), can_end(DROP)


def _leading_to(states: Bools, moves: Uint16) -> Bools:
    """The given states, and all states from which some text leads to one of them."""
    found = states.copy()
    found[0] = False
    while (more := found | found[moves].any(axis=1)).sum() > found.sum():
        found = more
    return found


def without_dropped(cutter: Cutter, where: str) -> tuple[Uint16, Uint8]:
    """Tables for `Pattern`: dropped pre-tokens become characters that no pre-token begins with.

    The scanner restarts after each such character. So every character of a dropped pre-token must
    behave like its first, and no pre-token that is kept may end inside a dropped one.
    """
    moves, ends = cutter
    if not (ends == DROP).any():
        return minimised(moves, ends)
    n = moves.shape[1]
    can_drop = _leading_to((ends == DROP).any(axis=1), moves)
    block = equivalent_states(moves, ends)
    fresh = block[moves[1]]
    for state in range(2, len(moves)):
        onward = (moves[state] > 0) & can_drop[moves[state]]
        if ((ends[state, :n] == KEEP) & onward).any():
            refuse("a dropped pre-token begins like one that is kept", where)
        if (onward & (block[moves[state]] != fresh)).any():
            refuse("the text that is dropped depends on where it begins", where)
    found = minimised(moves, (ends == KEEP).astype(np.uint8))
    if not found[1].any():
        refuse("all text is dropped", where)
    return found
