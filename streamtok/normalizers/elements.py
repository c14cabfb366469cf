"""Elements: the pieces of text from which the core learns its table of a sequence of steps.

Between two characters is a *border* at a step if neither side matters there to what becomes of the
other (`Step.apply`). A *caring* step is one that has not a border everywhere. An *element* is a run
of characters without a border at any step; each step sees what the steps before it have made of the
text. All steps in a row are asked for an element once, and the core keeps the answer with the
*bits* of the element: bit i says whether what it is by then begins with a character that joins, or
ends with one that holds, at caring step i. The core merges neighbours that these join, and asks for
both together. So one table does any sequence of steps.

What became nothing before a caring step has no border to what is before it; at the beginning of a
segment, none to what is after it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from .char_sets import joined
from .step import BEGIN, END, FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .normalizer import Normalizer
    from .step import Ranges, Step

__all__ = ["MOST_CARING", "CodePoints", "Element", "Elements", "Row"]

Row = tuple[int, int]
"""Bytes of a piece now, and before; `SAME` before: each byte stands for itself."""

MOST_CARING = 8
SAME = -1
# As in the core. GONE: it is nothing at some step; EMPTY: and begins a segment; LATER: something
# was left out before its text, so that this is not the first of the stream.
JOINS_ANY, HOLDS_ANY, EMPTY, LATER, GONE = 4, 8, 16, 32, 64
_MOST_PEELED = 16  # characters of a piece
_LONGEST_PEELED = 512  # characters of an element
_MOST_LEFT_OUT = 64


class Element(NamedTuple):
    """The properties of an element in its context."""

    text: str  # what it becomes
    joins: int
    holds: int
    flags: int
    rows: tuple[Row, ...]


class CodePoints:
    """Code points in ranges, which may overlap."""

    def __init__(self, *parts: Ranges) -> None:
        self.ranges = joined(one for ranges in parts for one in ranges)
        self._firsts = [low for low, _ in self.ranges]

    def __contains__(self, char: str) -> bool:
        at = bisect_right(self._firsts, ord(char)) - 1
        return at >= 0 and ord(char) <= self.ranges[at][1]


class _Asked:
    """A step, and of which characters it cares what is beside them."""

    def __init__(self, step: Step, bit: int) -> None:
        """bit: 0 if it does not care."""
        interest = step.interest()
        self.apply = step.apply
        self.bit = bit
        self.holds, self.joins = CodePoints(interest.holds), CodePoints(interest.joins)
        self.holds_any = CodePoints(interest.holds_any)
        self.joins_any = CodePoints(interest.joins_any)


class Elements:
    """Asks the steps of one normalizer, or of two, one after the other.

    Raises ValueError where more than MOST_CARING steps look at neighbours.
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
        self._asked = [
            _Asked(step, next(bits) if one.has_neighbours else 0)
            for step, one in zip(steps, interests, strict=True)
        ]
        self._n_first = len(first.steps) if second else len(steps)
        self.asks_for_begin = any(one.at_begin for one in interests)
        self.asks_for_end = any(one.at_end for one in interests)
        self.joins_any = any(one.joins_any for one in interests)
        # What may be anything but itself, or joined to what is before it,
        self.learned = CodePoints(
            *(one.changes for one in interests),
            *(one.joins for one in interests),
            *(one.joins_any for one in interests),
            *(one.holds_any for one in interests),
        ).ranges
        # and of each caring step, what holds, and stays itself.
        self.holds = [one.holds for one in interests if one.has_neighbours]

    def ask(self, source: str, where: int) -> Element:
        """What an element becomes where it stands, with its bits."""
        text = source
        joins = holds = flags = 0
        for number, step in enumerate(self._asked):
            if number == self._n_first and where & FIRST and self._begins_left_out(source, where):
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
            self._n_first == len(self._asked)
            and where & FIRST
            and self._begins_left_out(source, where)
        ):
            flags |= LATER
        pieces = self._pieces(source, where, text)
        return Element(text, joins, holds, flags, tuple(_rows(pieces)))

    def apply(self, text: str, where: int) -> str:
        """What all steps make of a text: the whole of `ask`, which it must agree with."""
        is_later = where & FIRST and self._begins_left_out(text, where)
        return self._made_of(text, where, bool(is_later))

    def _made_of(self, text: str, where: int, is_later: bool) -> str:
        for number, step in enumerate(self._asked):
            if number == self._n_first and is_later:
                where &= ~FIRST
            text = step.apply(text, where)
        return text

    def _begins_left_out(self, source: str, where: int) -> bool:
        """Whether the first normalizer leaves something out before the first text of its result."""
        steps = self._asked[: self._n_first]
        whole = _through(steps, source, where)
        if not whole:
            return bool(source)
        for size in range(1, min(len(source), _MOST_LEFT_OUT)):
            if not _through(steps, source[:size], where & ~END) and whole in (
                _through(steps, source[size:], where),
                _through(steps, source[size:], where & END),
            ):
                return True
        return False

    def _pieces(self, source: str, where: int, text: str) -> Iterator[tuple[str, str]]:
        """(text, source) of the smallest pieces that come to `text`, the last one first.

        Each piece by itself gives its own text.
        """
        is_later = bool(where & FIRST and self._begins_left_out(source, where))
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


def _through(steps: list[_Asked], text: str, where: int) -> str:
    for step in steps:
        text = step.apply(text, where)
    return text


def _rows(pieces: Iterator[tuple[str, str]]) -> Iterator[Row]:
    """The rows of pieces, which come in reverse order, with neighbours that stay as one."""
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
    """The bytes of a text, of which U+DC80 to U+DCFF are one each."""
    return len(text.encode("utf-8", "surrogateescape"))
