"""Elements: the pieces of text from which the core learns its table of a sequence of steps.

At a step, there is a *border* between two characters if neither side affects the result of the
other (`Step.apply`). A *context-sensitive* step is one that does not have borders everywhere. An
*element* is a smallest piece of text whose ends are borders at all steps; each step sees the result
of the steps before it. The steps process an element once, and the core stores the result with the
*bits* of the element. For context-sensitive step i, bit i of `joins` says whether the text that the
step gets begins with a character that joins, and bit i of `holds` whether it ends with one that
holds. The core merges neighbours that such bits connect, and asks for both together. So one table
serves any sequence of steps.

An element that is already empty at a context-sensitive step has no border on its left. At the start
of a segment, it has none on its right, either.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from .char_sets import joined
from .step import BEGIN, END, FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .normalizer import Normalizer
    from .step import Interest, Ranges, Step

__all__ = ["MOST_CARING", "CodePoints", "Element", "Elements", "Row"]

Row = tuple[int, int]
"""(size of a piece's result in bytes, size of its source); `SAME` as source: unchanged bytes."""

MOST_CARING = 8
SAME = -1
# As in the core. GONE: the element is empty at some step. EMPTY: it also begins a segment. LATER:
# text was removed before its result, which is therefore not the first of the stream.
JOINS_ANY, HOLDS_ANY, EMPTY, LATER, GONE = 4, 8, 16, 32, 64
_MOST_PEELED = 16  # characters of a piece
_LONGEST_PEELED = 512  # characters of an element
_MOST_REMOVED = 64


class Element(NamedTuple):
    """The properties of an element in its context."""

    text: str  # the result
    joins: int
    holds: int
    flags: int
    rows: tuple[Row, ...]


class CodePoints:
    """A set of code points, from ranges that may overlap."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = joined(ranges)
        self._firsts = [low for low, _ in self.ranges]

    def __contains__(self, char: str) -> bool:
        at = bisect_right(self._firsts, ord(char)) - 1
        return at >= 0 and ord(char) <= self.ranges[at][1]


class _StepContext:
    """A step, and the characters whose neighbours matter to it."""

    def __init__(self, step: Step, interest: Interest, bit: int) -> None:
        """bit: 0 if the step is not context-sensitive."""
        self.apply = step.apply
        self.bit = bit
        self.holds, self.joins = CodePoints(interest.holds), CodePoints(interest.joins)
        self.holds_any = CodePoints(interest.holds_any)
        self.joins_any = CodePoints(interest.joins_any)


class Elements:
    """Runs elements through the steps of one normalizer, or of two in turn.

    Raises ValueError if more than MOST_CARING steps look at neighbours.
    """

    def __init__(self, first: Normalizer, second: Normalizer | None = None) -> None:
        steps = [*first.steps, *(second.steps if second else ())]
        interests = [step.interest() for step in steps]
        self.n_caring = sum(one.has_neighbours for one in interests)
        if self.n_caring > MOST_CARING:
            raise ValueError(
                f"{self.n_caring} steps of the normalizer look at neighbouring characters, and at "
                f"most {MOST_CARING} are allowed"
            )
        bits = iter(1 << number for number in range(MOST_CARING))
        self._steps = [
            _StepContext(step, one, next(bits) if one.has_neighbours else 0)
            for step, one in zip(steps, interests, strict=True)
        ]
        self._n_first = len(first.steps) if second else len(steps)
        self.asks_for_begin = any(one.at_begin for one in interests)
        self.asks_for_end = any(one.at_end for one in interests)
        self.joins_any = any(one.joins_any for one in interests)
        # Characters that may change, join the text before them, or hold any text after them.
        self.learned = joined(
            span
            for one in interests
            for ranges in (one.changes, one.joins, one.joins_any, one.holds_any)
            for span in ranges
        )
        # For each context-sensitive step, the characters that hold.
        self.holds = [one.holds for one in interests if one.has_neighbours]

    def ask(self, source: str, where: int) -> Element:
        """The result for an element at this position, with its bits."""
        text = source
        joins = holds = flags = 0
        for number, step in enumerate(self._steps):
            if number == self._n_first and where & FIRST and self._removes_start(source, where):
                where &= ~FIRST
                flags |= LATER
            if not text:
                joins |= step.bit
                flags |= GONE | EMPTY * (where & BEGIN) | JOINS_ANY * bool(step.joins_any.ranges)
            elif step.bit:
                first, last = text[0], text[-1]
                joins |= step.bit * (first in step.joins)
                holds |= step.bit * (last in step.holds)
                flags |= JOINS_ANY * (first in step.joins_any) | HOLDS_ANY * (
                    last in step.holds_any
                )
            text = step.apply(text, where)
        if not text:
            flags |= GONE | EMPTY * (where & BEGIN)
        if (
            self._n_first == len(self._steps)
            and where & FIRST
            and self._removes_start(source, where)
        ):
            flags |= LATER
        pieces = self._pieces(source, where, text)
        return Element(text, joins, holds, flags, tuple(_rows(pieces)))

    def apply(self, text: str, where: int) -> str:
        """The result of all steps for a text; `ask` must agree with it."""
        is_later = where & FIRST and self._removes_start(text, where)
        return self._made_of(text, where, bool(is_later))

    def _made_of(self, text: str, where: int, is_later: bool) -> str:
        for number, step in enumerate(self._steps):
            if number == self._n_first and is_later:
                where &= ~FIRST
            text = step.apply(text, where)
        return text

    def _removes_start(self, source: str, where: int) -> bool:
        """Whether the first normalizer removes text before the first text of its result."""
        steps = self._steps[: self._n_first]
        whole = _through(steps, source, where)
        if not whole:
            return bool(source)
        for size in range(1, min(len(source), _MOST_REMOVED)):
            if not _through(steps, source[:size], where & ~END) and whole in (
                _through(steps, source[size:], where),
                _through(steps, source[size:], where & END),
            ):
                return True
        return False

    def _pieces(self, source: str, where: int, text: str) -> Iterator[tuple[str, str]]:
        """(text, source) of the smallest pieces that make up `text`, the last one first.

        Each source, processed by itself, becomes the text paired with it.
        """
        is_later = bool(where & FIRST and self._removes_start(source, where))
        while 1 < len(source) <= _LONGEST_PEELED and text and text != source:
            for size in range(1, min(len(source), _MOST_PEELED + 1)):
                left, right = source[:-size], source[-size:]
                made = self._made_of(right, where & END, False)
                rest = text[: len(text) - len(made)]
                if not (text.endswith(made) and (made or not where & END)):
                    continue
                if not (rest or not where & BEGIN):
                    continue
                if self._made_of(left, where & ~END, is_later) == rest:
                    yield made, right
                    source, text, where = left, rest, where & ~END
                    break
            else:
                break
        yield text, source


def _through(steps: list[_StepContext], text: str, where: int) -> str:
    for step in steps:
        text = step.apply(text, where)
    return text


def _rows(pieces: Iterator[tuple[str, str]]) -> Iterator[Row]:
    """The rows of pieces that come last first; unchanged neighbours share a row."""
    same = 0
    for text, source in reversed(list(pieces)):
        if text == source:
            same += n_bytes(text)
            continue
        if same:
            yield same, SAME
            same = 0
        yield n_bytes(text), n_bytes(source)
    if same:
        yield same, SAME


def n_bytes(text: str) -> int:
    """The size of a text in bytes, where U+DC80 to U+DCFF are one byte each."""
    return len(text.encode("utf-8", "surrogateescape"))
