"""Normalizers as tables of the core, which run a hundred times faster than their steps.

A table is filled as texts need it, by asking the steps: what becomes of a character, or of some
that stand together, in the middle of a stretch, at its beginning, or at its end (`_Asked`). What
makes that exact is a *border*: what stands on one side of it does not matter to what becomes of the
other side. Each step says between which characters it has none (`Interest`). What became nothing
before a step that cares about what stands beside it has no border at all.

A step that makes of some characters together what none of them is by itself could move the borders
of a later step. So only one step of a table may look at neighbours: the next one begins another
table, which sees what has become of the text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from .._core.encode import CharacterTable, Transform, transform, utf8_size
from .char_sets import ranges_of
from .forms import Form
from .growth import MOST_GROWTH, growth_of
from .links import LONGEST_HELD, has_long, held_by, unread_by, with_unread
from .step import text_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from .links import State
    from .normalizer import Normalizer
    from .step import Blocks, Interest, Ranges, Step

__all__ = [
    "AT_BEGIN",
    "AT_END",
    "AT_FIRST",
    "Changed",
    "Compiled",
    "Row",
    "compiled",
    "feed",
    "rows_of",
]

Row: TypeAlias = "tuple[int, int, int]"
"""(characters, bytes of each now, bytes of each before); unchanged bytes are (bytes, 1, 1)."""

# As in the core: where an element stands, and how characters are joined.
AT_BEGIN, AT_FIRST, AT_END, _WITHOUT_ROWS = 1, 2, 4, 8
MOST_TABLES = 64
_HOLDS, _HOLDS_ANY, _JOINS, _JOINS_ANY = 0x1000, 0x2000, 0x4000, 0x8000
_ASCII_OR_ONE = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]")
_SAMPLES = "\n0\u65e5~\U00011fff"  # of these, one matters to no step but strange ones


class Compiled(NamedTuple):
    """Normalizers, one after the other, as tables."""

    transform: Transform
    inside: tuple[State, ...]  # each one's state in a stretch where nothing waits


@lru_cache(maxsize=32)
def compiled(*normalizers: Normalizer) -> Compiled | None:
    """The tables of these normalizers; None: the slow steps must be used."""
    steps = [(at, step) for at, one in enumerate(normalizers) for step in one.steps]
    if not steps or growth_of([step.growth for _, step in steps]) > MOST_GROWTH:
        return None
    groups: list[list[_Traced]] = []
    cares = drops = False
    for at, step in steps:
        interest = step.interest()
        if (
            not groups
            or (cares and interest.has_neighbours)
            or (drops and interest.looks_at_begin)  # which may be far after the first element
        ):
            groups.append([])
            cares = drops = False
        if groups[1:] and at and step.begin(True) != step.begin(False):
            return None  # it may be the first or not, as the table before it has left out or not
        groups[-1].append(_Traced(at, step, interest))
        cares |= not interest.is_alone
        drops |= interest.drops_at_begin
    if len(groups) > MOST_TABLES:
        return None
    traced = [one for group in groups for one in group]
    for sample in _SAMPLES:
        if not any(one.has(sample) for one in traced):
            break
    else:
        return None  # there is nothing that matters to no step
    inside = [_state_inside(normalizer, sample) for normalizer in normalizers]
    known = [state for state in inside if state is not None]
    if len(known) < len(inside) or not all(one.settle(sample) for one in traced):
        return None
    tables = [_table(group, sample) for group in groups]
    return Compiled(Transform(tables), tuple(known))


def _table(traced: list[_Traced], sample: str) -> CharacterTable:
    """The table of some steps. sample: a character that none does anything about."""
    changes: list[tuple[int, int]] = []
    holds: list[tuple[int, int]] = []
    interests = [one.interest for one in traced]
    for interest in interests:
        changes += [*interest.changes, *interest.joins, *interest.joins_any, *interest.holds_any]
        holds += interest.holds
    first, others = traced[0].step, traced[1:]
    form = first if isinstance(first, Form) and not any(one.cares for one in others) else None
    pairs: frozenset[tuple[int, int]] = frozenset()
    marks = None
    if form is not None:
        points = [x for low, high in ranges_of(f"{form.form}_joins") for x in range(low, high + 1)]
        marks = [(x, unicodedata.combining(chr(x))) for x in points]
        if form.form in ("NFC", "NFKC"):
            pairs = composing_pairs()
    asked = _Asked(traced, sample)
    return CharacterTable(
        changes, any(one.cares for one in traced), holds, marks, pairs,
        any(interest.at_begin for interest in interests),
        any(interest.at_end for interest in interests),
        # One that cares may come after one that leaves something out.
        any(interest.joins_any for interest in interests) or any(one.cares for one in others),
        asked.learn, asked.resolve,
    )  # fmt: skip


def _state_inside(normalizer: Normalizer, sample: str) -> State | None:
    """The state after `sample` in the middle of a stretch, if that never waits; or None."""
    state = normalizer.feed(normalizer.begin(False), sample, False)[0]
    unchanged = [(sample, sample)]
    if held_by(state) or normalizer.feed(state, sample, False) != (state, unchanged):
        return None
    return state


class Changed(NamedTuple):
    """Text that a table has made, or the steps, with rows: of `size` bytes."""

    text: str
    rows: npt.NDArray[np.int64]  # see `Row`
    size: int

    @property
    def begins_left_out(self) -> bool:
        """Whether something was left out before the first text."""
        return not self.rows[0, 1]


def feed(
    table: Compiled | None,
    normalizer: Normalizer,
    state: State | None,
    text: str,
    ends: bool,
    is_first: bool,
    by_pieces: bool,
) -> tuple[State, list[Any]]:
    """The next state, and the blocks, as `Normalizer.feed` gives them, or `Changed`.

    state: None: before the stretch's first character. table: of the normalizer; None: its steps do
    it. by_pieces: all blocks are `Changed`, and their rows the same however the text is cut, unless
    more than LONGEST_HELD bytes wait.
    """
    if state is None:
        state = normalizer.begin(is_first)
    blocks: list[Any] = []
    if table is not None:
        found = _by_table(table, normalizer, state, text, ends, is_first)
        if found is not None:
            state, blocks, text = found
            if len(text) <= LONGEST_HELD:
                return with_unread(state, text), blocks
    pieces = _pieces(text, normalizer) if by_pieces else [text]
    if by_pieces and ends:
        pieces.append("")
    for number, piece in enumerate(pieces, 1):
        state, more = normalizer.feed(state, piece, ends and number == len(pieces))
        if not by_pieces:
            blocks += more
        elif rows := rows_of(marked(more)):
            made = text_of(more)
            blocks.append(Changed(made, np.array(rows), sum([n * size for n, _, size in rows])))
    return state, blocks


def _by_table(
    table: Compiled, normalizer: Normalizer, state: State, text: str, ends: bool, is_first: bool
) -> tuple[State, list[Any], str] | None:
    """(the state before what waits, blocks, that); None: the steps must do it."""
    (inside,) = table.inside
    where = 0
    if state != inside:
        # What waits is what came since nothing waited, or since the stretch began.
        if has_long(state):
            return None
        held, begin = held_by(state), normalizer.begin(is_first)
        unread = unread_by(state)
        before = unread and unread[0]
        if before == inside or normalizer.feed(inside, held, False) == (state, []):
            state = inside
        elif before == begin or normalizer.feed(begin, held, False) == (state, []):
            state, where = begin, AT_BEGIN | AT_FIRST * is_first
        else:
            return None
        text = held + text
    if not text:
        return state, [], ""
    found = transform(table.transform, text, where, ends, True)
    if found is None:
        return None
    result, rest, rows = found
    taken = text[: len(text) - len(rest)]
    if not taken:
        return state, [], text
    assert rows is not None
    made = taken if result is None else result.decode()
    known = np.frombuffer(rows, np.int64).reshape(-1, 3)
    return inside, [Changed(made, known, utf8_size(taken))], rest


def _pieces(text: str, normalizer: Normalizer) -> list[str]:
    """The pieces in which a text must go to the steps, so that any cut gives the same blocks."""
    names = [spec[0] for spec in normalizer.spec]
    if len(names) == 1 and names[0] in ("NFC", "NFD", "NFKC", "NFKD"):
        return [text] if text.isascii() else _ASCII_OR_ONE.findall(text)
    return list(text)


class _Asked:
    """Asks the slow steps."""

    def __init__(self, traced: list[_Traced], sample: str) -> None:
        from .normalizer import Normalizer

        self.traced, self.sample = traced, sample
        self._joined = Normalizer([one.step for one in traced])
        parts = [[one.step for one in group] for _, group in groupby(traced, lambda one: one.at)]
        self._parts = [Normalizer(steps) for steps in parts]
        inside = _state_inside(self._joined, sample)
        assert inside is not None
        self._inside = inside

    def learn(self, code: int) -> tuple[int, str | None, tuple[Row, ...]]:
        """How a character is joined, and what it becomes by itself: its text, None if itself."""
        char = chr(code)
        flags, text = self._trace(char)
        if text == char or flags & _HOLDS_ANY:  # with that, it is never an element by itself
            return flags, None, ()
        return flags, *self.resolve(char, 0)

    def resolve(self, element: str, where: int) -> tuple[str, tuple[Row, ...]]:
        """What an element becomes, with its rows."""
        blocks: list[tuple[str, str, bool]] = []
        state = self._begin(element, bool(where & AT_FIRST)) if where & AT_BEGIN else self._inside
        last = "" if where & AT_END else self.sample
        for piece in [element, last] if where & _WITHOUT_ROWS else [*element, last]:
            state, new = self._joined.feed(state, piece, not piece)
            blocks += marked(new)
        if not where & AT_END:
            blocks = _without(blocks, self.sample)
        text = text_of(blocks)
        return text, (_row(text, element),) if where & _WITHOUT_ROWS else rows_of(blocks)

    def _begin(self, element: str, is_first: bool) -> State:
        """The state before a stretch that begins with `element`."""
        if len(self._parts) == 1:
            return self._joined.begin(is_first)
        first, second = self._parts
        _, blocks = first.feed(first.begin(is_first), element + self.sample, False)
        is_still_first = is_first and not begins_left_out(blocks)
        return first.begin(is_first) + second.begin(is_still_first)

    def _trace(self, text: str) -> tuple[int, str]:
        """How a text is joined at any step, and what it becomes in the middle of a stretch."""
        flags = 0
        for one in self.traced:
            if text:
                flags |= one.joins(text[0]) | one.holds(text[-1])
                _, blocks = one.alone.feed(one.inside, text + self.sample, False)
                text = text_of(blocks)[: -len(self.sample)]
            elif one.cares:
                flags |= _HOLDS | _HOLDS_ANY | _JOINS | _JOINS_ANY
        return flags, text


class _Traced:
    """A step, and the characters whose neighbours matter to it."""

    inside: State

    def __init__(self, at: int, step: Step, interest: Interest) -> None:
        """at: the number of its normalizer."""
        from .normalizer import Normalizer

        self.at, self.step, self.interest = at, step, interest
        self.alone = Normalizer([step])
        self.cares = not interest.is_alone
        self._holds, self._joins = _Set(interest.holds), _Set(interest.joins)
        self._holds_any, self._joins_any = _Set(interest.holds_any), _Set(interest.joins_any)
        self._changes = _Set(interest.changes)

    def settle(self, sample: str) -> bool:
        """Whether its state in the middle of a stretch is certain."""
        found = _state_inside(self.alone, sample)
        if found is not None:
            self.inside = found
        return found is not None

    def has(self, char: str) -> bool:
        """Whether it does something about a character."""
        return bool(char in self._changes or self.joins(char) or self.holds(char))

    def joins(self, char: str) -> int:
        """The flags of a text that begins with `char`."""
        return _JOINS * (char in self._joins) | (_JOINS | _JOINS_ANY) * (char in self._joins_any)

    def holds(self, char: str) -> int:
        """The flags of a text that ends with `char`."""
        return _HOLDS * (char in self._holds) | (_HOLDS | _HOLDS_ANY) * (char in self._holds_any)


class _Set:
    """Code points in ranges, which may overlap."""

    def __init__(self, ranges: Ranges) -> None:
        joined: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if joined and low <= joined[-1][1] + 1:
                joined[-1] = joined[-1][0], max(high, joined[-1][1])
            else:
                joined.append((low, high))
        self.firsts = [low for low, _ in joined]
        self.lasts = [high for _, high in joined]

    def __contains__(self, char: str) -> bool:
        at = bisect_right(self.firsts, ord(char)) - 1
        return at >= 0 and ord(char) <= self.lasts[at]


def marked(blocks: Blocks) -> list[tuple[str, str, bool]]:
    """The blocks of one piece, and whether each is one whole: see `whole_block`."""
    found: list[tuple[str, str, bool]] = []
    for text, source in blocks:
        if found and source and not text and not found[-1][1] and not found[-1][2]:
            found[-1] = found[-1][0], source, True
        elif text or source:
            found.append((text, source, False))
    return found


def begins_left_out(blocks: Blocks) -> bool:
    """Whether something was left out before the first text, so that this is not the first."""
    for text, source in blocks:
        if text or source:
            return not text
    return False


def _without(blocks: list[tuple[str, str, bool]], sample: str) -> list[tuple[str, str, bool]]:
    """`blocks` without the sample that ends them."""
    text, source, is_whole = blocks.pop()
    assert not is_whole
    assert text.endswith(sample)
    assert source.endswith(sample)
    if text != sample or source != sample:
        blocks.append((text[: -len(sample)], source[: -len(sample)], False))
    return blocks


def rows_of(blocks: Iterable[tuple[str, str, bool]]) -> tuple[Row, ...]:
    """Which bytes of the text stand for which of the source; what is one whole is one row.

    A character that did not change stands for itself. Equal numbers of characters on both sides
    correspond one by one.
    """
    rows: list[Row] = []
    for text, source, is_whole in blocks:
        if is_whole or len(text) != len(source):
            rows.append((1, utf8_size(text), utf8_size(source)))
        elif text == source:
            rows.append(_row(text, source))
        else:
            rows += map(_row, text, source)
    some = [row for row in rows if row[0] and row[1:] != (0, 0)]
    groups = groupby(some, lambda row: row[1:])
    return tuple((sum([row[0] for row in group]), *sizes) for sizes, group in groups)


def _row(text: str, source: str) -> Row:
    size = utf8_size(text)
    return (size, 1, 1) if text == source else (1, size, utf8_size(source))


@lru_cache(maxsize=1)
def composing_pairs() -> frozenset[tuple[int, int]]:
    """A starter and a mark of which NFC makes something else, if nothing is between; no Hangul.

    Either they compose, or the mark goes before one that the starter is composed of, and composes
    with what is before that: e with acute, and a dot below.
    """
    with_mark: dict[str, set[str]] = {}
    composed: list[str] = []
    for low, high in ranges_of("NFD_changes"):
        for char in map(chr, range(low, high + 1)) if not low <= 0xAC00 <= high else ():
            parts = unicodedata.decomposition(char).split()
            if len(parts) == 2 and unicodedata.normalize("NFC", char) == char:
                first, second = (chr(int(part, 16)) for part in parts)
                with_mark.setdefault(first, set()).add(second)
                composed.append(char)
    combining = unicodedata.combining
    pairs = {(first, second) for first, seconds in with_mark.items() for second in seconds}
    for char in composed:
        letters = unicodedata.normalize("NFD", char)
        for size in range(1, len(letters)):
            beginning = unicodedata.normalize("NFC", letters[:size])
            low, high = combining(letters[size - 1]), combining(letters[size])
            for second in with_mark.get(beginning, ()):
                if low <= combining(second) < high and combining(second):
                    pairs.add((char, second))
    return frozenset((ord(first), ord(second)) for first, second in pairs)
