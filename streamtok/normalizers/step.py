"""What a step of a normalizer is.

A step changes a *stretch*: the text between two added tokens. The stretch may arrive in chunks, cut
anywhere. `feed` gives what no later text can change; the rest waits in the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from .growth import Growth

__all__ = ["Block", "Blocks", "Interest", "Ranges", "State", "Step", "text_of", "whole_block"]

# (text, source): `text` stands for `source`, a stretch of the input. Either may be empty: text is
# put in, or left out. With as many characters on both sides, character i stands for character i;
# otherwise the block is one whole.
Block: TypeAlias = "tuple[str, str]"
Blocks: TypeAlias = "list[tuple[str, str]]"
# None, bool, int, str and tuples of them. JSON makes lists of the tuples; `check_state` makes them
# tuples again. Never changed in place.
State: TypeAlias = Any
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


class Step(Protocol):
    """One step. Immutable."""

    @property
    def spec(self) -> tuple[Any, ...]:
        """The step's name and its settings: str, int, bool, bytes, None and tuples of them."""
        ...

    @property
    def growth(self) -> Growth:
        """How much longer it can make a text."""
        ...

    def interest(self) -> Interest:
        """Which characters it does something about."""
        ...

    def begin(self, is_first: bool) -> State:
        """The state before the first character of a stretch."""
        ...

    def feed(self, state: State, text: str, final: bool) -> tuple[State, Blocks]:
        """The next state, and what has become final. final: the stretch ends with `text`.

        Over any cutting of a stretch, the texts of all blocks joined are its result, and the
        sources joined are the stretch.
        """
        ...

    def held(self, state: State) -> str:
        """The characters of the stretch that wait."""
        ...

    def check_state(self, value: Any) -> State:
        """The state that a parsed JSON value stands for. Raises ValueError if there is none."""
        ...


def whole_block(text: str, source: str) -> Blocks:
    """`text` stands for `source` as a whole, even if both have the same number of characters."""
    if len(text) == len(source) > 1 and text != source:
        return [(text, ""), ("", source)]
    return [(text, source)]


def text_of(blocks: Iterable[tuple[Any, ...]]) -> str:
    """The text that the blocks give, one after the other."""
    return "".join([block[0] for block in blocks])
