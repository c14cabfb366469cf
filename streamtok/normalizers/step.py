"""The interface of a normalizer's step.

A step changes a *segment*: the text between two added tokens. `apply` is the step itself, a pure
function; `interest` says where a text can be cut without changing the result. Tables are learned
from these two (`elements.py`) and do all the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from .growth import Growth

__all__ = [
    "BEGIN",
    "END",
    "FIRST",
    "WHOLE",
    "Interest",
    "Ranges",
    "Step",
]

# Flags of a text: it begins a segment; it begins the first segment of a stream; it ends a segment.
BEGIN, FIRST, END = 1, 2, 4
WHOLE = BEGIN | FIRST | END

Ranges: TypeAlias = "Sequence[tuple[int, int]]"  # the first and last code point of each


class Interest(NamedTuple):
    """The characters that a step may change. All others always stay as they are.

    Two neighbours do not affect each other, unless the first is in `holds` and the second in
    `joins`, or the first is in `holds_any`, or the second in `joins_any`.
    """

    changes: Ranges = ()  # by themselves
    holds: Ranges = ()
    joins: Ranges = ()
    holds_any: Ranges = ()
    joins_any: Ranges = ()
    at_begin: bool = False  # the step may change the start of a segment
    at_end: bool = False

    @property
    def has_neighbours(self) -> bool:
        """Whether some characters may affect their neighbours."""
        return bool(self.holds or self.joins or self.holds_any or self.joins_any)


class Step:
    """One step of a normalizer. Immutable."""

    __slots__ = ()

    spec: tuple[Any, ...]  # its name and its settings: str, int, bool, bytes, None, tuples of them
    growth: Growth  # how much longer it can make a text

    def interest(self) -> Interest:
        """The characters that the step may change."""
        raise NotImplementedError

    def apply(self, text: str, where: int) -> str:
        """The result for `text`. where: flags BEGIN, FIRST (only with BEGIN) and END.

        For non-empty texts a and b, apply(a + b) is apply(a) + apply(b), unless a ends with a
        character of `interest().holds` and b begins with one of `joins`, or a ends with one of
        `holds_any`, or b begins with one of `joins_any`. Of the flags, a gets BEGIN and FIRST, and
        b gets END. END matters only if the text ends with a character of `holds`.
        """
        raise NotImplementedError
