"""Several pre-tokenization splits, applied in turn, as one automaton.

Hugging Face's sequences of pre-tokenizers cut a text by one split and each pre-token by the next.
`splits.py` describes a single split. To the next split, a pre-token is a whole text: its end is the
end of input. This module combines the splits into one `Pattern`, which streams like any other. If
the tables cannot express a sequence, an error names the reason.

The automata of two splits run side by side; where the first ends a pre-token, the second sees the
end of input. The end of each pre-token of the first must be known once the next character is, as in
runs of a class or of up to three digits. Where the second ends a pre-token inside one of the first,
the first must be in a state like its start; otherwise its next pre-token would begin at the wrong
position. A pre-token that the first drops is dropped as a whole.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .budget import Budget
from .bundled_tables import bundled_tables
from .dfa import MAX_CLASSES, MAX_STATES
from .minimise import equivalent_states, minimised, surely_ending
from .pattern import Pattern
from .splits import DROP, KEEP, Cutter, Split, cut_by, ends_of, is_definite, refuse, without_dropped
from .tables import CODE_POINTS_PER_BLOCK, Tables

__all__ = ["MAX_SPLITS", "SplitSequence", "compose", "rebuilt_sequence", "same_pieces"]

MAX_SPLITS = 16  # the longest sequences known have six
_SPACE, _MARK = 0x20, 0x2581

Uint8 = npt.NDArray[np.uint8]
Uint16 = npt.NDArray[np.uint16]


class SplitSequence(Pattern):
    """The pattern that applies `splits` in turn; a str is an isolated split.

    spaces_are_marks: the splits treat a space like U+2581, which replaces spaces in the file.
    Raises PatternError if a split does not compile, UnsupportedPatternError if no automaton can
    follow the sequence, and ValueError if there are no splits.

    >>> SplitSequence([r"\\d", r"[a-z]+"]).findall("ab--12c")
    ['ab', '--', '1', '2', 'c']
    >>> SplitSequence([Split(r"\\s+", "removed"), r"\\d"]).findall("ab  1 2c")
    ['ab', '1', '2', 'c']
    """

    is_composed = True
    splits: tuple[Split, ...]
    spaces_are_marks: bool

    def __init__(
        self,
        splits: Sequence[str | tuple[str, str]],
        spaces_are_marks: bool = False,
        tables: Tables | None = None,  # of these splits, if already computed
    ) -> None:
        self.splits = tuple(
            Split(split) if isinstance(split, str) else Split(*split) for split in splits
        )
        self.spaces_are_marks = spaces_are_marks
        if not splits:
            raise ValueError("a sequence of splits needs at least one pattern")
        if len(splits) > MAX_SPLITS:
            refuse(f"{len(splits)} patterns, more than {MAX_SPLITS}", self.splits[0].pattern)
        source = [s.pattern if s.behavior == "isolated" else list(s) for s in self.splits]
        text = json.dumps([*source, True] if spaces_are_marks else source)
        if tables is None:
            bundled = bundled_tables(text)
            tables = bundled[0] if bundled else compose(self.splits, spaces_are_marks)
        super().__init__(text, tables)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt_sequence, (tuple(map(tuple, self.splits)), self.spaces_are_marks)


@functools.lru_cache(maxsize=16)
def rebuilt_sequence(
    splits: tuple[str | tuple[str, str], ...], spaces_are_marks: bool = False
) -> SplitSequence:
    """A `SplitSequence`, cached so that copies and restored states need not rebuild it."""
    return SplitSequence(splits, spaces_are_marks)


def compose(splits: tuple[Split, ...], spaces_are_marks: bool = False) -> Tables:
    """Compute the tables of `splits` applied in turn."""
    parts = [Pattern.compile(split.pattern) for split in splits]
    (pages, blocks), tables = _with_common_alphabet(parts)
    if spaces_are_marks:
        pages, blocks = _with_class_of(pages, blocks, _SPACE, _MARK)
    where = " then ".join(split.pattern for split in splits)
    budget = Budget(where)
    result: Cutter | None = None
    for table, split in zip(tables, splits, strict=True):
        whole = cut_by(*table, split)
        result = whole if result is None else _in_turn(result, whole, where, budget)
    assert result is not None
    if [split.behavior for split in splits] == ["only"]:  # what `Pattern` does anyway
        transitions, accepts = tables[0]
    else:
        transitions, accepts = without_dropped(result, where)
    return Tables(
        transitions=np.ascontiguousarray(transitions),
        accepts=np.ascontiguousarray(accepts),
        class_pages=pages,
        class_blocks=blocks,
    )


def _with_class_of(pages: Uint16, blocks: Uint8, point: int, other: int) -> tuple[Uint16, Uint8]:
    """The pages and blocks after `point` is moved to the class of `other`."""
    page, at = divmod(point, CODE_POINTS_PER_BLOCK)
    other_page, other_at = divmod(other, CODE_POINTS_PER_BLOCK)
    block = blocks[pages[page]].copy()
    block[at] = blocks[pages[other_page], other_at]
    pages = pages.copy()
    pages[page] = len(blocks)
    return pages, np.concatenate([blocks, block[None]])


def _with_common_alphabet(
    parts: list[Pattern],
) -> tuple[tuple[Uint16, Uint8], list[tuple[Uint16, Uint8]]]:
    """Pages and blocks of common classes, and the tables of each pattern, by common class."""
    pages, page_of = _different_rows([part.class_pages for part in parts])
    # One array per pattern: its own class of every character of the distinct pages.
    own = [part.class_blocks[pages[i]].reshape(-1) for i, part in enumerate(parts)]
    classes, class_of = _different_rows(own)
    if len(classes[0]) > MAX_CLASSES:
        refuse("too many character classes", str(len(classes[0])))
    blocks = class_of.reshape(-1, CODE_POINTS_PER_BLOCK).astype(np.uint8)
    tables = [
        (part.transitions[:, column], part.accepts[:, [*column.tolist(), part.n_classes]])
        for part, column in zip(parts, classes, strict=True)
    ]
    return (page_of.astype(np.uint16), blocks), tables


def _different_rows(
    columns: Sequence[Uint8 | Uint16],
) -> tuple[list[Uint8 | Uint16], npt.NDArray[np.intp]]:
    """The distinct rows of a table, sorted, as columns; and each row's index among these.

    Like numpy.unique with an axis, but many times faster: it sorts each row as one number.
    """
    number = np.zeros(len(columns[0]), np.int64)
    bound = 1  # all numbers are below it
    for column in columns:
        size = int(column.max()) + 1
        if bound * size > 1 << 62:
            values, number = np.unique(number, return_inverse=True)
            bound = len(values)
        number = number * size + column
        bound *= size
    _, firsts, which = np.unique(number, return_index=True, return_inverse=True)
    return [column[firsts] for column in columns], which


def same_pieces(a: Pattern, b: Pattern) -> bool:
    """Whether two patterns cut every text into the same pre-tokens."""
    smallest = []
    for transitions, accepts in _with_common_alphabet([a, b])[1]:
        # An acceptance is never the last one if another is sure to follow.
        sure = surely_ending(transitions, accepts)
        accepts[:, :-1][sure[transitions]] = 0
        smallest.append(minimised(transitions, accepts))
    return all(np.array_equal(x, y) for x, y in zip(*smallest, strict=True))


def _in_turn(first: Cutter, second: Cutter, where: str, budget: Budget) -> Cutter:
    """The automaton that cuts each pre-token of `first` by `second`."""
    moves_a, ends_a = first
    moves_b, ends_b = second
    n = moves_a.shape[1]
    if not is_definite(first):
        refuse("the end of an earlier split's pre-token is known only later", where)
    can_keep, can_drop = ends_of(first)
    numbers: dict[tuple[int, int], int] = {(0, 0): 0, (1, 1): 1}
    pairs = [(0, 0), (1, 1)]  # (a, 0): the first will drop its pre-token
    moves: list[list[int]] = [[0] * n]
    ends: list[list[int]] = [[0] * (n + 1)]
    for a, b in itertools.islice(pairs, 1, None):  # also those that are appended below
        budget.spend(2 * n)
        row = []
        accepted = []
        for c in range(n):
            into = int(moves_a[a, c])
            if into == 0:  # the pre-token of the first ends here
                row.append(0)
                accepted.append(_end(int(ends_a[a, c]), int(ends_b[b, n])))
                continue
            target = into, int(moves_b[b, c])
            if not can_keep[into]:
                target = into, 0
            elif can_drop[into] and ends_b[b, c]:
                refuse("a split inside text that an earlier one may drop", where)
            accepted.append(int(ends_b[b, c]) if can_keep[into] else 0)
            if target[1] == 0 and can_keep[into]:
                row.append(0)
                continue
            if target not in numbers:
                numbers[target] = len(numbers)
                pairs.append(target)
                if len(pairs) > MAX_STATES:
                    refuse(f"more than {MAX_STATES} states", where)
            row.append(numbers[target])
        moves.append(row)
        at_end = _end(int(ends_a[a, n]), int(ends_b[b, n])) if a > 1 or ends_a[a, n] else 0
        ends.append([*accepted, at_end])
    table, accepts = np.array(moves, np.uint16), np.array(ends, np.uint8)
    _check_restarts(first, pairs, table, accepts, where)
    return Cutter(*minimised(table, accepts))


def _end(of_first: int, of_second: int) -> int:
    """KEEP, DROP or 0 for a pre-token of the second split where one of the first ends."""
    return DROP if of_first == DROP else of_second if of_first == KEEP else 0


def _check_restarts(
    first: Cutter, pairs: list[tuple[int, int]], table: Uint16, accepts: Uint8, where: str
) -> None:
    """Refuse if a pre-token may end inside one of the first split and change how that continues."""
    moves_a, ends_a = first
    n = table.shape[1]
    marks = np.column_stack([np.where(moves_a == 0, 1 + ends_a[:, :n], 0), ends_a[:, n]])
    block = equivalent_states(moves_a, marks.astype(np.uint8))
    sure = surely_ending(table, accepts)
    for number, (a, _) in enumerate(pairs[1:], 1):
        for c in range(n):
            is_last = accepts[number, c] and not sure[table[number, c]]
            inside = moves_a[a, c] > 0
            if is_last and inside and block[moves_a[a, c]] != block[moves_a[1, c]]:
                refuse("a split inside a pre-token of an earlier one", where)
