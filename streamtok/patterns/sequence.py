"""Several pre-tokenization patterns in turn as one automaton, and nothing left out.

Hugging Face's sequences of isolating splits cut a text by one pattern and each pre-token by the
next. Text that no match covers (a *gap*) is a pre-token, too. To the next pattern a pre-token is a
whole text: its end is the end of input. Here that becomes one `Pattern`, so that streams work as
with any other. There are two steps. Where the tables cannot express one, an error names it.

*Gaps.* A gap goes on while no match begins. Whether one begins with a character must follow from
that character and the next (or from the first alone), which holds for the patterns in use.

*One after the other.* Both automata run side by side; where the first ends a pre-token, the second
sees the end of input. The first must know the end of its pre-token there and then (runs of a class,
runs of up to three digits). Where the second ends a pre-token inside one of the first's, the first
must be as good as new: else its next pre-token would begin in the wrong place.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedPatternError
from .budget import Budget
from .dfa import MAX_CLASSES, MAX_STATES
from .minimise import equivalent_states, minimised, surely_ending
from .pattern import Pattern
from .tables import CODE_POINTS_PER_BLOCK, Tables

__all__ = ["MAX_SPLITS", "SplitSequence", "rebuilt_sequence", "same_pieces"]

MAX_SPLITS = 16  # in turn: the longest sequences known have six

Uint8 = npt.NDArray[np.uint8]
Uint16 = npt.NDArray[np.uint16]
_Automaton = tuple[Uint16, Uint8]  # transitions and accepts of `Pattern`, over a common alphabet


class SplitSequence(Pattern):
    """The pre-tokens that `patterns` cut in turn. Raises UnsupportedPatternError, PatternError.

    >>> SplitSequence([r"\\d", r"[a-z]+"]).findall("ab--12c")
    ['ab', '--', '1', '2', 'c']
    """

    is_composed = True
    patterns: tuple[str, ...]

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)
        if not patterns:
            raise ValueError("a sequence of splits needs at least one pattern")
        if len(patterns) > MAX_SPLITS:
            _refuse(f"{len(patterns)} patterns, more than {MAX_SPLITS}", self.patterns[0])
        super().__init__(json.dumps(self.patterns), _compose(self.patterns))

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt_sequence, (self.patterns,)


@functools.lru_cache(maxsize=16)
def rebuilt_sequence(patterns: tuple[str, ...]) -> SplitSequence:
    """SplitSequence: as the class, but not made again for each copy and each saved state."""
    return SplitSequence(patterns)


def _compose(patterns: tuple[str, ...]) -> Tables:
    parts = [Pattern.compile(pattern) for pattern in patterns]
    (pages, blocks), columns = _common_alphabet(parts)
    budget = Budget(" then ".join(patterns))
    result: _Automaton | None = None
    for part, column, source in zip(parts, columns, patterns, strict=True):
        whole = _with_gaps(
            part.transitions[:, column], part.accepts[:, [*column, part.n_classes]], source
        )
        result = whole if result is None else _in_turn(result, whole, patterns, budget)
    assert result is not None
    return Tables(
        transitions=np.ascontiguousarray(result[0]),
        accepts=np.ascontiguousarray(result[1]),
        class_pages=pages,
        class_blocks=blocks,
    )


def _common_alphabet(
    parts: list[Pattern],
) -> tuple[tuple[Uint16, Uint8], list[npt.NDArray[np.intp]]]:
    """Pages and blocks of classes that all share, and for each pattern its own class of each."""
    pages, page_of = np.unique(
        np.stack([part.class_pages for part in parts], axis=1), axis=0, return_inverse=True
    )
    # One row of own classes for each character of each different page.
    own = np.stack(
        [part.class_blocks[pages[:, i]].reshape(-1) for i, part in enumerate(parts)], axis=1
    )
    classes, class_of = np.unique(own, axis=0, return_inverse=True)
    if len(classes) > MAX_CLASSES:
        _refuse("too many character classes", str(len(classes)))
    blocks = class_of.reshape(-1, CODE_POINTS_PER_BLOCK).astype(np.uint8)
    columns = [classes[:, i].astype(np.intp) for i in range(len(parts))]
    return (page_of.reshape(-1).astype(np.uint16), blocks), columns


def same_pieces(a: Pattern, b: Pattern) -> bool:
    """Whether two patterns cut every text into the same pre-tokens."""
    _, columns = _common_alphabet([a, b])
    tables = []
    for part, column in zip((a, b), columns, strict=True):
        transitions = part.transitions[:, column]
        accepts = part.accepts[:, [*column, part.n_classes]].copy()
        # An acceptance that another is sure to follow is never the last one.
        sure = surely_ending(transitions, accepts)
        accepts[:, :-1][(transitions > 0) & sure[transitions]] = 0
        tables.append(minimised(transitions, accepts))
    return all(np.array_equal(x, y) for x, y in zip(*tables, strict=True))


def _refuse(construct: str, where: str) -> NoReturn:
    raise UnsupportedPatternError(
        f"a sequence of splits cannot be followed: {construct} ({where[:60]})",
        construct=construct,
        position=0,
    )


def _with_gaps(transitions: Uint16, accepts: Uint8, source: str) -> _Automaton:
    """The automaton whose pre-tokens are the matches and the gaps between them."""
    n_states, n = transitions.shape
    accepting = accepts.astype(bool)
    if accepting[1].any():
        _refuse("empty match", source)
    sure = surely_ending(transitions, accepts)
    firsts = sorted({0, *transitions[1].tolist()})  # states after one character
    is_gap = {}
    for state in firsts:
        ends = np.append(transitions[state] == 0, True) & ~accepting[state]
        open_ = ~ends[:n] & ~accepting[state, :n] & ~sure[transitions[state]]
        if state and open_.any():
            _refuse("what begins a match depends on more than the next character", source)
        is_gap[state] = ends if state else np.ones(n + 1, bool)
    # New states: dead, start, then for each of `firsts` "one character read" and "a gap up to here,
    # and one character more that may belong to it", then the old ones.
    read = {state: 2 + i for i, state in enumerate(firsts)}
    gap = {state: 2 + len(firsts) + i for i, state in enumerate(firsts)}
    old = 2 + 2 * len(firsts)
    moves = np.zeros((old + n_states, n), np.int64)
    ends_at = np.zeros((old + n_states, n + 1), bool)
    moves[old:] = np.where(transitions > 0, transitions.astype(np.int64) + old, 0)
    ends_at[old:] = accepting
    begins = transitions[1].tolist()
    moves[1] = [read[state] for state in begins]
    # After a gap: on with it, if the next character may belong to it.
    onward = np.array([0 if not is_gap[state].any() else gap[state] for state in begins])
    for state in firsts:
        here = is_gap[state]
        for row in (read[state], gap[state]):
            moves[row] = np.where(here[:n], onward, 0)
            ends_at[row] = here
        if state:
            moves[read[state]] = np.where(here[:n], onward, moves[old + state])
            ends_at[read[state]] = here | accepting[state]
    return minimised(moves.astype(np.uint16), ends_at.astype(np.uint8))


def _in_turn(
    first: _Automaton, second: _Automaton, patterns: tuple[str, ...], budget: Budget
) -> _Automaton:
    """The pre-tokens of `second` in each pre-token of `first`; both leave nothing out."""
    moves_a, ends_a = first
    moves_b, ends_b = second
    n = moves_a.shape[1]
    live = ends_a[1:].astype(bool)
    if not (live[:, :n] | (moves_a[1:] > 0)).all() or not live[1:, n].all():
        reason = "an earlier split knows the end of its pre-token only later"
        _refuse(reason, " then ".join(patterns))
    numbers: dict[tuple[int, int], int] = {(0, 0): 0, (1, 1): 1}
    pairs = [(0, 0), (1, 1)]
    moves: list[list[int]] = [[0] * n]
    ends: list[list[bool]] = [[False] * (n + 1)]
    for a, b in _growing(pairs):
        budget.spend(2 * n)
        row = []
        accepted = []
        for c in range(n):
            if moves_a[a, c] == 0:  # the pre-token of the first ends here
                row.append(0)
                accepted.append(bool(ends_b[b, n]))
                continue
            accepted.append(bool(ends_b[b, c]))
            if moves_b[b, c] == 0:
                row.append(0)
                continue
            target = int(moves_a[a, c]), int(moves_b[b, c])
            if target not in numbers:
                numbers[target] = len(numbers)
                pairs.append(target)
                if len(pairs) > MAX_STATES:
                    _refuse(f"more than {MAX_STATES} states", " then ".join(patterns))
            row.append(numbers[target])
        moves.append(row)
        ends.append([*accepted, bool(ends_b[b, n])])
    table, accepts = np.array(moves, np.uint16), np.array(ends, np.uint8)
    _check_restarts(moves_a, pairs, table, accepts, patterns)
    return minimised(table, accepts)


def _growing(pairs: list[tuple[int, int]]) -> Any:
    """The pairs from the second on, those too that are appended meanwhile."""
    at = 1
    while at < len(pairs):
        yield pairs[at]
        at += 1


def _check_restarts(
    moves_a: Uint16,
    pairs: list[tuple[int, int]],
    table: Uint16,
    accepts: Uint8,
    patterns: tuple[str, ...],
) -> None:
    """Refuse where a pre-token may end inside one of the first split and change how it goes on."""
    block = equivalent_states(moves_a, (moves_a == 0).astype(np.uint8))
    sure = surely_ending(table, accepts)
    n = table.shape[1]
    for number, (a, _) in enumerate(pairs[1:], 1):
        for c in range(n):
            is_last = accepts[number, c] and not (table[number, c] and sure[table[number, c]])
            inside = moves_a[a, c] > 0
            if is_last and inside and block[moves_a[a, c]] != block[moves_a[1, c]]:
                _refuse("a split inside a pre-token of an earlier one", " then ".join(patterns))
