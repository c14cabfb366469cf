"""Where pieces begin, seen from four characters: window tables, derived from a pattern's DFA.

Whether a piece begins at position i is nearly always decided by the characters i - 2, i - 1, i and
i + 1, whatever comes before and after. Deciding from a window has no dependency from one byte to
the next, as a walk has, so it can be done for 64 bytes at once (`_core/windows.h`). What a window
leaves undecided is walked.

Derivation. Let q be the state before character i - 2 of the walk over the piece that holds that
character: any state that the automaton can be in. The classes of the four characters take q to the
places where this piece may end, and, if it ends before character i - 1, the start state to the
places where the next one may. If for every q a boundary at i follows, or for every q none does, the
window is decided. That all states are tried makes it sound for every text; what it costs is windows
that some state, however rare, leaves open.

Some states are reached only right after a rare character, the *trigger*: the apostrophe of English
contractions. Without them, fewer characters need to be told apart and more windows are decided. So
windows that hold a trigger, or come less than `reach` characters after one, stay undecided, and the
others need only the states that are left when `reach` other characters have passed.

The idea of such masks is from the hand-written ones of gigatoken and fastokens; deriving them from
the automaton makes them cover every pattern that compiles and leaves nothing to get wrong by hand.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .pattern import MAX_WINDOW_CLASSES, Pattern, Windows

__all__ = ["BEGIN", "NO_BEGIN", "UNDECIDED", "derive_windows"]

MAX_REACH = 5
NO_BEGIN, BEGIN, UNDECIDED = 0, 1, 2

Uint8 = npt.NDArray[np.uint8]


def derive_windows(pattern: Pattern) -> Windows | None:
    """The windows of `pattern`, or None where windows of this size cannot help."""
    if not pattern.is_total:
        return None
    ascii_classes = np.array([pattern.class_of(point) for point in range(128)])
    best: Windows | None = None
    for trigger in [None, *_single(ascii_classes)]:
        found = _with_trigger(pattern, ascii_classes, trigger)
        if found and (best is None or _rate(found) < _rate(best)):
            best = found
    return best


def _single(ascii_classes: npt.NDArray[np.int64]) -> list[int]:
    """The ASCII characters that are alone in their class, as far as ASCII goes."""
    values, counts = np.unique(ascii_classes, return_counts=True)
    return [int(np.flatnonzero(ascii_classes == value)[0]) for value in values[counts == 1]]


def _rate(windows: Windows) -> float:
    """The share of undecided windows in a text of independent characters, frequent ones as here."""
    frequency = np.ones(128)
    frequency[[ord(" "), *range(ord("a"), ord("z") + 1)]] = 20
    if windows.trigger != 255:
        frequency[windows.trigger] = 0
    weights = np.bincount(windows.classes, frequency, MAX_WINDOW_CLASSES) / frequency.sum()
    pairs = np.multiply.outer(weights, weights)
    left = np.bincount(windows.lefts.ravel(), pairs.ravel(), MAX_WINDOW_CLASSES)
    right = np.bincount(windows.rights.ravel(), pairs.ravel(), MAX_WINDOW_CLASSES)
    return float(left @ (windows.decisions == UNDECIDED) @ right)


def _with_trigger(
    pattern: Pattern, ascii_classes: npt.NDArray[np.int64], trigger: int | None
) -> Windows | None:
    banned = -1 if trigger is None else int(ascii_classes[trigger])
    others = [c for c in range(pattern.n_classes) if c != banned]
    states, reach = _states_without(pattern, others)
    if reach > MAX_REACH:
        return None
    columns: dict[bytes, int] = {}  # characters that no remaining state tells apart are one
    classes = np.zeros(128, np.uint8)
    members: list[int] = []
    for point, number in enumerate(ascii_classes):
        if number == banned:
            continue
        column = np.concatenate(
            [pattern.transitions[states, number], pattern.accepts[states, number]]
        )
        if column.tobytes() not in columns:
            columns[column.tobytes()] = len(columns)
            members.append(int(number))
        classes[point] = columns[column.tobytes()]
    if len(members) > MAX_WINDOW_CLASSES:
        return None
    decided = _decisions(pattern, states, members)
    return _factored(decided, classes, 255 if trigger is None else trigger, reach)


def _states_without(pattern: Pattern, others: list[int]) -> tuple[list[int], int]:
    """The states possible after enough characters of the classes `others`, and how many these are.

    Those that a piece can be in that began within these characters are among them.
    """

    def closure(found: set[int]) -> set[int]:
        queue = list(found)
        for state in queue:
            new = set(pattern.transitions[state, others].tolist()) - found - {0}
            found |= new
            queue += new
        return found

    begun = closure({1})
    states = set(range(1, pattern.n_states))
    reach = 0
    while reach <= MAX_REACH:
        following = set(pattern.transitions[np.ix_(sorted(states), others)].ravel().tolist()) - {0}
        fewer = following | begun
        if fewer == states:
            break
        states = fewer
        reach += 1
    return sorted(states), reach


def _decisions(pattern: Pattern, states: list[int], members: list[int]) -> Uint8:
    """uint8 [k, k, k, k]: what the windows of k classes decide."""
    k = len(members)
    transitions = pattern.transitions[:, members]
    accepts = pattern.accepts[:, members].astype(bool)
    settled = pattern.settled.astype(bool)
    c1, c2, c3 = np.ix_(range(k), range(k), range(k))
    begins = np.zeros((k, k, k, k), bool)  # by some way
    absent = np.zeros((k, k, k, k), bool)

    # A piece that begins before the second character. An accepting state that is left for good has
    # accepted: the pattern is total.
    state = transitions[1][c1]
    may_end = accepts[state, c2]
    state = transitions[state, c2]
    ends_at_third = may_end & (state == 0)
    ends_later = accepts[state, c3]
    state_3 = transitions[state, c3]
    goes_on = (state != 0) & (ends_later | ((state_3 != 0) & settled[state_3]) | ~may_end)
    fresh_begins = may_end & ~goes_on
    fresh_absent = (state != 0) & ((state_3 != 0) | ends_later | ~may_end)
    fresh_begins |= ends_at_third

    for start in states:
        for c0 in range(k):
            state = int(transitions[start, c0])
            if state == 0:
                continue
            end_1 = np.broadcast_to(accepts[state][c1], (k, k, k))
            after_1 = transitions[state][c1]
            end_2 = accepts[after_1, c2] & (after_1 != 0)
            after_2 = transitions[after_1, c2]
            end_3 = accepts[after_2, c3] & (after_2 != 0)
            after_3 = transitions[after_2, c3]
            sure = (after_3 != 0) & settled[after_3]  # the piece reaches beyond the window
            may_reach = after_3 != 0
            last_is_3 = end_3
            last_is_2 = end_2 & ~end_3
            last_is_1 = end_1 & ~end_2 & ~end_3
            absent[c0] |= may_reach | last_is_3
            begins[c0] |= last_is_2 & ~sure
            new_piece = last_is_1 & ~sure
            begins[c0] |= new_piece & fresh_begins
            absent[c0] |= new_piece & fresh_absent
    decided = np.full((k, k, k, k), UNDECIDED, np.uint8)
    decided[begins & ~absent] = BEGIN
    decided[absent & ~begins] = NO_BEGIN
    return decided


def _factored(decided: Uint8, classes: Uint8, trigger: int, reach: int) -> Windows | None:
    """The same decisions by way of the two halves, or None if these are too many."""
    k = decided.shape[0]
    by_left, lefts = np.unique(decided.reshape(k * k, k * k), axis=0, return_inverse=True)
    table, rights = np.unique(by_left, axis=1, return_inverse=True)
    if max(table.shape) > MAX_WINDOW_CLASSES:
        return None
    size = MAX_WINDOW_CLASSES
    halves = np.zeros((2, size, size), np.uint8)
    halves[0, :k, :k] = lefts.reshape(k, k)
    halves[1, :k, :k] = rights.reshape(k, k)
    decisions = np.full((size, size), UNDECIDED, np.uint8)
    decisions[: table.shape[0], : table.shape[1]] = table
    return Windows(classes, halves[0], halves[1], decisions, trigger, reach)
