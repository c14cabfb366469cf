"""Normalizers as tables of the core, which run a hundred times faster than their steps.

A table is filled as texts need it, by asking the steps: what becomes of a character, or of some
that stand together, in the middle of a stretch, at its beginning, or at its end (`_Asked`). What
makes that exact is a *border*: what stands on one side of it does not matter to what becomes of the other
side. Each step says between which characters it has none (`Interest`). Two characters have a border
in a sequence of steps if each step has one between what they have become; what became nothing
before a step that cares has no border at all.

Steps that make of some characters together what none of them is by itself could move the borders of
later steps. So those elements are traced, too, and where one has fewer borders than its characters
tell, the slow steps must do the whole text.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from .._core.encode import Transform, utf8_size
from .char_sets import ranges_of
from .forms import Form

if TYPE_CHECKING:
    from .normalizer import Normalizer
    from .step import Blocks, Interest, Ranges, State, Step

__all__ = ["AT_BEGIN", "AT_END", "AT_FIRST", "Row", "compiled", "rows_of", "state_inside"]

Row: TypeAlias = "tuple[int, int, int]"
"""(characters, bytes of each now, bytes of each before); unchanged bytes are (bytes, 1, 1)."""

# As in the core: where an element stands, and how characters are joined.
AT_BEGIN, AT_FIRST, AT_END, _WITHOUT_ROWS = 1, 2, 4, 8
_HOLDS, _HOLDS_ANY, _JOINS, _JOINS_ANY = 0x1000, 0x2000, 0x4000, 0x8000
_SAMPLES = "\n0\u65e5~\U00011fff"  # of these, one matters to no step but strange ones


@lru_cache(maxsize=32)
def compiled(*normalizers: Normalizer) -> Transform | None:
    """A table for these normalizers, one after the other; None: the slow steps must be used.

    Of several, the core's rows say nothing about where the text is from.
    """
    steps = [step for normalizer in normalizers for step in normalizer.steps]
    interests = [step.interest() for step in steps]
    known = [interest for interest in interests if interest is not None]
    if len(known) < len(steps) or not steps:
        return None
    drops = False
    for interest in known:
        if drops and interest.looks_at_begin:
            return None  # what it looks at may be far behind the first element
        drops |= interest.drops_at_begin
    asked = _Asked.of(normalizers, steps, known)
    if asked is None:
        return None
    changes: list[tuple[int, int]] = []
    holds: list[tuple[int, int]] = []
    for interest in known:
        changes += [*interest.changes, *interest.joins, *interest.joins_any, *interest.holds_any]
        holds += interest.holds
    cares = [not interest.is_alone for interest in known]
    form = steps[0] if isinstance(steps[0], Form) and not any(cares[1:]) else None
    pairs: frozenset[tuple[int, int]] = frozenset()
    marks = None
    if form is not None:
        points = [x for low, high in ranges_of(f"{form.form}_joins") for x in range(low, high + 1)]
        marks = [(x, unicodedata.combining(chr(x))) for x in points]
        if form.form in ("NFC", "NFKC"):
            pairs = composing_pairs()
    return Transform(
        changes, any(cares), holds, marks, pairs,
        any(interest.at_begin for interest in known), any(interest.at_end for interest in known),
        any(interest.joins_any for interest in known) or asked.may_drop, asked.learn, asked.resolve,
    )  # fmt: skip


def state_inside(normalizer: Normalizer, sample: str) -> State | None:
    """The state behind `sample` in the middle of a stretch, if that never waits; or else None."""
    state = normalizer.feed(normalizer.begin(False), sample, False)[0]
    unchanged = [(sample, sample)]
    if normalizer.held(state) or normalizer.feed(state, sample, False) != (state, unchanged):
        return None
    return state


class _Asked:
    """Asks the slow steps."""

    def __init__(
        self,
        normalizers: Sequence[Normalizer],
        sample: str,
        inside: list[State],
        traced: list[_Traced],
    ) -> None:
        self.normalizers = normalizers
        self.sample = sample
        self.inside = inside
        self.traced = traced
        # One that cares may come after one that leaves something out.
        self.may_drop = any(one.cares for one in traced[1:])
        self.may_be_odd = sum(one.cares for one in traced) > 1

    @classmethod
    def of(
        cls, normalizers: Sequence[Normalizer], steps: Sequence[Step], interests: Sequence[Interest]
    ) -> _Asked | None:
        """None: there is nothing that matters to no step."""
        from .normalizer import Normalizer

        sets = [_Traced(step, interest) for step, interest in zip(steps, interests, strict=True)]
        for sample in _SAMPLES:
            if not any(one.has(sample) for one in sets):
                break
        else:
            return None
        inside = [state_inside(normalizer, sample) for normalizer in normalizers]
        for one in sets:
            one.inside = state_inside(Normalizer([one.step]), sample)
        return cls(normalizers, sample, inside, sets)

    def learn(self, code: int) -> tuple[int, str | None, tuple[Row, ...]]:
        """How a character is joined, and what it becomes by itself: its text, None if itself."""
        char = chr(code)
        flags, text = self._trace(char)
        if text == char:
            return flags, None, ()
        text, rows, _ = self.resolve(char, 0)
        return flags, text, rows

    def resolve(self, element: str, where: int) -> tuple[str, tuple[Row, ...], bool]:
        """What an element becomes, with its rows; whether it has fewer borders than its characters
        tell.
        """
        blocks: list[tuple[str, str, bool]] = []
        is_first = bool(where & AT_FIRST)
        states: list[Any] = [
            normalizer.begin(is_first) if where & AT_BEGIN else inside
            for normalizer, inside in zip(self.normalizers, self.inside, strict=True)
        ]
        last = "" if where & AT_END else self.sample
        pieces = [element, last] if where & _WITHOUT_ROWS else [*element, last]
        for piece in pieces:
            ends = not piece
            new: Blocks = []
            for which, normalizer in enumerate(self.normalizers):
                text = piece if not which else "".join([now for now, _ in new])
                states[which], new = normalizer.feed(states[which], text, ends)
            blocks += marked(new)
        if not where & AT_END:
            blocks = _without(blocks, self.sample)
        text = "".join([now for now, _, _ in blocks])
        if where & _WITHOUT_ROWS or len(self.normalizers) > 1:
            rows: tuple[Row, ...] = (_row(text, element),)
        else:
            rows = rows_of(blocks)
        return text, rows, self.may_be_odd and self._is_odd(element)

    def _is_odd(self, element: str) -> bool:
        flags = self._trace(element)[0]
        first, last = self._trace(element[0])[0], self._trace(element[-1])[0]
        told = first & (_JOINS | _JOINS_ANY) | last & (_HOLDS | _HOLDS_ANY)
        return bool(flags & ~told)

    def _trace(self, text: str) -> tuple[int, str]:
        """How a text is joined at any step, and what it becomes in the middle of a stretch."""
        flags = 0
        for one in self.traced:
            if text:
                flags |= one.joins(text[0]) | one.holds(text[-1])
                _, blocks = one.step.feed(one.inside, text + self.sample, False)
                text = "".join([now for now, _ in blocks])[: -len(self.sample)]
            elif one.cares:
                flags |= _HOLDS | _HOLDS_ANY | _JOINS | _JOINS_ANY
        return flags, text


class _Traced:
    """A step, and to which characters it matters what stands beside them."""

    inside: State = None

    def __init__(self, step: Step, interest: Interest) -> None:
        self.step = step
        self.cares = not interest.is_alone
        self._holds, self._joins = _Set(interest.holds), _Set(interest.joins)
        self._holds_any, self._joins_any = _Set(interest.holds_any), _Set(interest.joins_any)
        self._changes = _Set(interest.changes)

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

    A character that did not change stands for itself, and so do those that a changed block begins
    and ends with, on both sides. With as many characters on both sides, each stands for its own.
    """
    rows: list[Row] = []
    for text, source, is_whole in blocks:
        if text == source:
            rows.append((utf8_size(text, True), 1, 1))
        elif is_whole or not text or not source:
            rows.append(_row(text, source))
        elif len(text) == len(source):
            for now, before in zip(text, source, strict=True):
                rows.append(_row(now, before))
        else:
            begin = _n_common(text, source)
            end = _n_common(text[begin:][::-1], source[begin:][::-1])
            rows += [(utf8_size(text[:begin], True), 1, 1)]
            rows += [_row(text[begin : len(text) - end], source[begin : len(source) - end])]
            rows += [(utf8_size(text[len(text) - end :], True), 1, 1)]
    some = [row for row in rows if row[0] and row[1:] != (0, 0)]
    groups = groupby(some, lambda row: row[1:])
    return tuple((sum([row[0] for row in group]), *sizes) for sizes, group in groups)


def _row(text: str, source: str) -> Row:
    size = utf8_size(text, True)
    return (size, 1, 1) if text == source else (1, size, utf8_size(source, True))


def _n_common(text: str, source: str) -> int:
    """How many of the first characters are the same."""
    pairs = enumerate(zip(text, source, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(text), len(source)))


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
