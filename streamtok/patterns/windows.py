"""Window tables, which find pre-token starts from four characters; derived from a pattern's DFA.

Whether a pre-token begins at position i is nearly always decided by the characters i - 2, i - 1, i
and i + 1, whatever comes before and after. Unlike a walk, a decision from a window does not depend
on the previous byte, so 64 bytes can be decided in parallel (`_core/scan/windows.h`). Positions
that windows leave undecided are walked.

Derivation. Consider the pre-token that holds character i - 2. Let q be the state of its walk before
that character: any state that the automaton can be in. From q, the classes of the four characters
determine where this pre-token may end and, if that is before character i - 1, where the next
pre-token may end. The window is decided if every q leads to a boundary at i, or if none does. As
all states are tried, this is sound for every text; the price is that one rare state can leave a
window undecided.

Some states are reached only after a rare pair of characters: the *trigger*, such as the apostrophe
of English contractions, and one of its *followers*, such as s, t or d. Without that pair, followers
act like all other letters, so fewer classes are needed and more windows are decided. So windows
that contain such a pair, or begin fewer than `reach` characters after one, stay undecided. The
other windows need only the states that remain after `reach` characters without a pair.

If a pattern takes digits in threes, no window can tell how many digits came before. Windows do
decide where a run of digits begins; from there, the scanner counts. `window_flags.py` derives
further flags, about runs of white space and about triggers.

Characters that the pattern skips are pre-tokens here (`Automaton.closed`); the scanner recognizes
them by their class.

The idea of such masks comes from the hand-written ones of gigatoken and fastokens. Deriving them
from the automaton covers every pattern that compiles and avoids manual errors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .automaton import Automaton
from .tables import MAX_WINDOW_CLASSES, Windows
from .window_flags import ENDS_RUN, HARMLESS, RUN, WindowFlags

__all__ = ["BEGIN", "NO_BEGIN", "UNDECIDED", "derive_windows"]

MAX_REACH = 5
MAX_COUNT = 8
FOLLOWER = 128  # added to the class, like the flags of `window_flags.py`
CLASS = MAX_WINDOW_CLASSES - 1  # mask of the class number
NO_BEGIN, BEGIN, UNDECIDED = 0, 1, 2
NONE = 255
_STEP = 64  # table cells that numpy processes in the time of one step in Python
MAX_CELLS = 1 << 24  # limit on table cells processed: patterns in use take less than a tenth

Uint8 = npt.NDArray[np.uint8]
States = npt.NDArray[np.bool_]  # (2, n_states): row 1 if the last character was the trigger


def derive_windows(pattern: Automaton) -> Windows | None:
    """The windows of `pattern`; None if windows of this size cannot help, or take too long to find.

    Without windows, the scanner walks all text, which is slower but has the same result.
    """
    closed = pattern.closed
    if closed is None:
        return None
    pattern = closed
    ascii_classes = np.array([pattern.class_of(point) for point in range(128)])
    best: Windows | None = None
    work = _Work(MAX_CELLS)
    try:
        for trigger in [NONE, *_single(ascii_classes)]:
            found = _with_trigger(pattern, ascii_classes, trigger, work)
            if found and (best is None or _rate(found) < _rate(best)):
                best = found
        if best is not None:
            best = _with_flags(pattern, ascii_classes, best, work)
    except _WorkExceeded:
        pass
    return best


class _WorkExceeded(Exception):
    """The work exceeds its limit."""


class _Work:
    """Counts the table cells that are processed."""

    def __init__(self, cells: int) -> None:
        self.cells = cells

    def spend(self, cells: int) -> None:
        self.cells -= cells
        if self.cells < 0:
            raise _WorkExceeded


def _single(ascii_classes: npt.NDArray[np.int64]) -> list[int]:
    """The ASCII characters that share their class with no other ASCII character."""
    values, counts = np.unique(ascii_classes, return_counts=True)
    return [int(np.flatnonzero(ascii_classes == value)[0]) for value in values[counts == 1]]


def _rate(windows: Windows) -> float:
    """The share of undecided windows in random text, mostly of spaces and lower-case letters."""
    frequency = np.ones(128)
    frequency[[ord(" "), *range(ord("a"), ord("z") + 1)]] = 20
    classes = windows.classes & CLASS
    weights = np.bincount(classes, frequency, MAX_WINDOW_CLASSES) / frequency.sum()
    pairs = np.multiply.outer(weights, weights)
    left = np.bincount(windows.lefts.ravel(), pairs.ravel(), MAX_WINDOW_CLASSES)
    right = np.bincount(windows.rights.ravel(), pairs.ravel(), MAX_WINDOW_CLASSES)
    return float(left @ (windows.decisions == UNDECIDED) @ right)


def _with_trigger(
    pattern: Automaton, ascii_classes: npt.NDArray[np.int64], trigger: int, work: _Work
) -> Windows | None:
    trigger_class = -1 if trigger == NONE else int(ascii_classes[trigger])
    followers = _followers(pattern, ascii_classes, trigger_class, work)
    states, reach = _states_without(pattern, trigger_class, set(followers), work)
    if reach > MAX_REACH:
        return None
    columns: dict[bytes, int] = {}  # characters that no remaining state tells apart share one
    classes = np.zeros(128, np.uint8)
    members: list[int] = []
    work.spend(128 * pattern.n_states)
    for point, number in enumerate(ascii_classes.tolist()):
        # After the trigger, a follower may be treated as the class it is like: see `_followers`.
        as_any = followers.get(number, number)
        column = _outcomes(pattern, states[0], number) + _outcomes(pattern, states[1], as_any)
        if column not in columns:
            columns[column] = len(columns)
            members.append(as_any)
        classes[point] = columns[column] + (FOLLOWER if number in followers else 0)
    if len(members) > MAX_WINDOW_CLASSES:
        return None
    possible = np.flatnonzero(states.any(axis=0)).tolist()
    work.spend(len(possible) * len(members) ** 4)
    decided = _decisions(pattern, possible, members)
    counted, run = _counted(pattern, members, classes % FOLLOWER)
    return _factored(decided, classes, trigger, reach, counted, run)


def _with_flags(
    pattern: Automaton, ascii_classes: npt.NDArray[np.int64], windows: Windows, work: _Work
) -> Windows:
    """The windows with the flags of `window_flags.py` added to their classes."""
    trigger_class = -1 if windows.trigger == NONE else int(ascii_classes[windows.trigger])
    followers = _followers(pattern, ascii_classes, trigger_class, work)
    states, _ = _states_without(pattern, trigger_class, set(followers), work)
    possible = np.flatnonzero(states.any(axis=0)).tolist()
    numbers = (windows.classes & CLASS).tolist()
    members = [0] * (max(numbers) + 1)
    for number, kind in zip(numbers, ascii_classes.tolist(), strict=True):
        members[number] = followers.get(kind, kind)
    is_open = _all_windows(windows, len(members)) == UNDECIDED
    rows = np.einsum("abcc->abc", is_open)
    work.spend(_STEP * len(possible) * (int(rows.sum()) + len(ascii_classes) * len(followers)))
    finder = WindowFlags(pattern, possible, members)
    never = {windows.counted} | {numbers[windows.trigger] for _ in followers}
    runs, ends = finder.runs(is_open, never)
    harmless = set()
    if windows.trigger != NONE:
        harmless = finder.harmless(ascii_classes.tolist(), trigger_class, followers)
    classes = windows.classes.copy()
    for point, kind in enumerate(ascii_classes.tolist()):
        classes[point] |= RUN if numbers[point] in runs else 0
        classes[point] |= ENDS_RUN if numbers[point] in ends else 0
        classes[point] |= HARMLESS if kind in harmless else 0
    return windows._replace(classes=classes)


def _all_windows(windows: Windows, k: int) -> Uint8:
    """uint8 [k, k, k, k]: the decision for every four classes."""
    a, b, c, d = np.ix_(range(k), range(k), range(k), range(k))
    found: Uint8 = windows.decisions[windows.lefts[a, b], windows.rights[c, d]]
    return found


def _outcomes(pattern: Automaton, states: npt.NDArray[np.bool_], number: int) -> bytes:
    """Transitions and acceptances of the class `number` in these states, as comparable bytes."""
    next_states: bytes = pattern.transitions[states, number].tobytes()
    accepts: bytes = pattern.accepts[states, number].tobytes()
    return next_states + accepts


def _followers(
    pattern: Automaton, ascii_classes: npt.NDArray[np.int64], trigger_class: int, work: _Work
) -> dict[int, int]:
    """The classes that matter only after the trigger, each with the class it is otherwise like."""
    if trigger_class < 0:
        return {}
    states, _ = _states_without(pattern, trigger_class, set(range(pattern.n_classes)), work)
    numbers, sizes = np.unique(ascii_classes, return_counts=True)
    alike: dict[bytes, int] = {}
    followers: dict[int, int] = {}
    for number in numbers[np.argsort(-sizes, kind="stable")].tolist():
        if number == trigger_class:
            continue
        base = alike.setdefault(_outcomes(pattern, states[0], number), number)
        if base != number:
            followers[number] = base
    # Keep only classes that matter directly after the trigger, not farther after it.
    while followers:
        states, _ = _states_without(pattern, trigger_class, set(followers), work)
        farther = [
            number
            for number, base in followers.items()
            if _outcomes(pattern, states[0], number) != _outcomes(pattern, states[0], base)
        ]
        if not farther:
            break
        for number in farther:
            del followers[number]
    return followers


def _states_without(
    pattern: Automaton, trigger_class: int, followers: set[int], work: _Work
) -> tuple[States, int]:
    """The states possible after `reach` characters without a trigger-follower pair, and `reach`.

    They include the states of pre-tokens that begin within these characters.
    """
    every = np.arange(pattern.n_classes) != trigger_class
    others = every & ~np.isin(np.arange(pattern.n_classes), list(followers))

    def following(states: States) -> States:
        work.spend(pattern.transitions.size)
        found = np.zeros_like(states)
        for rows, columns in zip(states, (every, others), strict=True):
            found[0, pattern.transitions[rows][:, columns]] = True
            if trigger_class >= 0 and trigger_class not in (followers if columns is others else ()):
                found[1, pattern.transitions[rows, trigger_class]] = True
        found[:, 0] = False
        return found

    begun = np.zeros((2, pattern.n_states), bool)
    begun[:, 1] = True
    while ((more := following(begun)) & ~begun).any():
        begun |= more
    states = np.ones_like(begun)
    states[:, 0] = False
    reach = 0
    while reach <= MAX_REACH:
        fewer = following(states) | begun
        if (fewer == states).all():
            break
        states = fewer
        reach += 1
    return states, reach


def _counted(pattern: Automaton, members: list[int], classes: Uint8) -> tuple[int, int]:
    """The class whose runs are cut into pre-tokens of a fixed length, and that length.

    The class must consist of consecutive ASCII characters, because the plain version of the scanner
    finds them by comparison with the first and the last.
    """
    best = (0, NONE, 0)
    for number, member in enumerate(members):
        characters = np.flatnonzero(classes == number)
        if np.ptp(characters) >= len(characters):
            continue
        state, count = int(pattern.transitions[1, member]), 1
        while count <= MAX_COUNT and pattern.settled[state] and pattern.transitions[state, member]:
            state = int(pattern.transitions[state, member])
            count += 1
        is_piece = pattern.settled[state] and pattern.accepts[state, member]
        if 1 < count <= MAX_COUNT and is_piece and pattern.transitions[state, member] == 0:
            best = max(best, (len(characters), number, count))
    return best[1], best[2]


def _decisions(pattern: Automaton, states: list[int], members: list[int]) -> Uint8:
    """uint8 [k, k, k, k]: the decision for every window of k classes."""
    k = len(members)
    transitions = pattern.transitions[:, members]
    accepts = pattern.accepts[:, members].astype(bool)
    settled = pattern.settled.astype(bool)
    c1, c2, c3 = np.ix_(range(k), range(k), range(k))
    begins = np.zeros((k, k, k, k), bool)  # from some state
    absent = np.zeros((k, k, k, k), bool)

    # First, a pre-token that begins with the second character. The pattern is total, so a pre-token
    # that reaches the dead state has accepted before.
    state = transitions[1][c1]
    may_end = accepts[state, c2]
    state = transitions[state, c2]
    ends_later = accepts[state, c3]
    state_3 = transitions[state, c3]
    fresh_begins = may_end & ~(ends_later | settled[state_3])
    fresh_absent = (state != 0) & ((state_3 != 0) | ends_later | ~may_end)

    for start in states:
        for c0 in range(k):
            state = int(transitions[start, c0])
            if state == 0:
                continue
            end_1 = np.broadcast_to(accepts[state][c1], (k, k, k))
            after_1 = transitions[state][c1]
            end_2 = accepts[after_1, c2]
            after_2 = transitions[after_1, c2]
            end_3 = accepts[after_2, c3]
            after_3 = transitions[after_2, c3]
            sure = settled[after_3]  # the pre-token reaches beyond the window
            absent[c0] |= (after_3 != 0) | end_3
            begins[c0] |= end_2 & ~end_3 & ~sure
            new_piece = end_1 & ~end_2 & ~end_3 & ~sure
            begins[c0] |= new_piece & fresh_begins
            absent[c0] |= new_piece & fresh_absent
    decided = np.full((k, k, k, k), UNDECIDED, np.uint8)
    decided[begins & ~absent] = BEGIN
    decided[absent & ~begins] = NO_BEGIN
    return decided


def _factored(
    decided: Uint8, classes: Uint8, trigger: int, reach: int, counted: int, run: int
) -> Windows | None:
    """The decisions factored by the two halves of a window; None if there are too many halves."""
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
    return Windows(classes, halves[0], halves[1], decisions, trigger, reach, counted, run)
