"""What a step of a normalizer is.

A step changes a *segment*: the text between two added tokens. `apply` is the step itself, a pure
function; `interest` says where a text can be cut without changing what it becomes. Tables are
learned from these two (`elements.py`), and do all the work.
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

# Where a text is: it begins a segment, which is the first of its stream; it ends one.
BEGIN, FIRST, END = 1, 2, 4
WHOLE = BEGIN | FIRST | END

Ranges: TypeAlias = "Sequence[tuple[int, int]]"  # the first and last code point of each


class Interest(NamedTuple):
    """Which characters a step does something about. All others stay as they are, wherever they are.

    Between two characters nothing is changed that is not changed by one of them alone, unless one
    is in `holds` and the next one in `joins`, or one of them in `holds_any` or `joins_any`.
    """

    changes: Ranges = ()  # by themselves
    holds: Ranges = ()
    joins: Ranges = ()
    holds_any: Ranges = ()
    joins_any: Ranges = ()
    at_begin: bool = False  # something may be done at the beginning of a segment
    at_end: bool = False

    @property
    def has_neighbours(self) -> bool:
        """Whether some characters matter to those beside them."""
        return bool(self.holds or self.joins or self.holds_any or self.joins_any)


class Step:
    """One step: what it makes of a text. Immutable."""

    __slots__ = ()

    spec: tuple[Any, ...]  # its name and its settings: str, int, bool, bytes, None, tuples of them
    growth: Growth  # how much longer it can make a text

    def interest(self) -> Interest:
        """Which characters it does something about."""
        raise NotImplementedError

    def apply(self, text: str, where: int) -> str:
        """What `text` becomes. where: of BEGIN, FIRST (only with BEGIN) and END.

        For texts a and b, apply(a + b) is apply(a) + apply(b), unless a ends with a character of
        `interest().holds` and b begins with one of `joins`, or one of these with `holds_any` or
        `joins_any`. Only a has BEGIN and FIRST, and only b has END; neither is empty. END matters
        only to texts that end with a character of `holds`.
        """
        raise NotImplementedError
