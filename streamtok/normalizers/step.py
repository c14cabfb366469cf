"""What a step of a normalizer is.

A step changes a *stretch*: the text between two added tokens. `apply` is the step itself, a pure
function; `interest` says where a text can be cut without changing what it becomes. Tables are
learned from these two (`elements.py`).

`change` is the older way into streams: how much of a text no later text can change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from .growth import Growth

__all__ = [
    "BEGIN",
    "END",
    "FIRST",
    "WHOLE",
    "Block",
    "Blocks",
    "Interest",
    "Ranges",
    "Step",
    "text_of",
    "whole_block",
]

# Where a text is: it begins a stretch, which is the first of its stream; it ends one.
BEGIN, FIRST, END = 1, 2, 4
WHOLE = BEGIN | FIRST | END

# (text, source): `text` stands for `source`, a stretch of the input. Either may be empty: text is
# put in, or left out. With as many characters on both sides, character i stands for character i;
# otherwise the block is one whole.
Block: TypeAlias = "tuple[str, str]"
Blocks: TypeAlias = "list[tuple[str, str]]"
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
    at_begin: bool = False  # something may be done at the beginning of a stretch,
    looks_at_begin: bool = False  # which depends on what the first character is,
    drops_at_begin: bool = False  # or takes something off
    at_end: bool = False

    @property
    def has_neighbours(self) -> bool:
        """Whether some characters matter to those beside them."""
        return bool(self.holds or self.joins or self.holds_any or self.joins_any)

    @property
    def is_alone(self) -> bool:
        """Whether no character matters to another one, or to what is done at an end."""
        return not (self.has_neighbours or self.at_begin or self.at_end)


class Step:
    """One step: what it makes of a text. Immutable. All that streams need is in `Normalizer`."""

    __slots__ = ()

    spec: tuple[Any, ...]  # its name and its settings: str, int, bool, bytes, None, tuples of them
    growth: Growth  # how much longer it can make a text
    # A *context* is a number: all that matters of the text before. There are as many.
    contexts = 1

    @property
    def waits(self) -> frozenset[str]:
        """What waits goes on waiting when only these come after it."""
        return frozenset()

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

    def begin(self, is_first: bool) -> int:
        """The context before the first character of a stretch."""
        return 0

    def change(self, context: int, text: str, final: bool, seen: int) -> tuple[int, Blocks]:
        """The context then, and what no later text can change: the blocks of the text's beginning.

        final: the stretch ends with `text`, and all of it is final. The rest is given again, with
        what comes after it. seen: so many characters are such a rest.
        """
        raise NotImplementedError


def whole_block(text: str, source: str) -> Blocks:
    """`text` stands for `source` as a whole, even if both have the same number of characters."""
    if len(text) == len(source) > 1:
        return [(text, ""), ("", source)]
    return [(text, source)]


def text_of(blocks: Iterable[tuple[Any, ...]]) -> str:
    """The text that the blocks give, one after the other."""
    return "".join([block[0] for block in blocks])
