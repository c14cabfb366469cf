"""What an encoding asks of its engine, and how it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from .._core.encode import Output, SpecialMatcher, Tail, Transform
    from .._types import Text
    from .template import Template

__all__ = ["NO_LIMIT", "Chain", "Engine"]

Result = TypeVar("Result")

NO_LIMIT = (1 << 63) - 1  # bytes of a whole text that may wait: they are in memory anyway


class Engine(Protocol):
    """Text to ids, for one vocabulary and one pattern. Immutable, shared by threads."""

    def encode(
        self, text: Text, matcher: SpecialMatcher, errors: str, output: Output[Result]
    ) -> Result:
        """The ids of a whole text, as `output` gives them: LIST, ARRAY or COUNT.

        Raises DisallowedSpecialError for a special token that `matcher` refuses, UnicodeDecodeError
        ("strict").
        """
        ...

    def chain(self, matcher: SpecialMatcher, errors: str) -> Chain:
        """What a stream does. Raises UnsupportedPatternError."""
        ...


class Chain(Protocol):
    """Changes the chunks of streams before the core has them. Immutable.

    The state of a stream is all in its `Tail`: what the chain has to remember is the tail's note,
    which the core commits together with its own state, or not at all.
    """

    @property
    def is_direct(self) -> bool:
        """Whether chunks may go to the tail at once."""
        ...

    @property
    def transform(self) -> Transform | None:
        """What changes chunks on their way to the tail, in the core."""
        ...

    def tail(self, template: Template) -> Tail:
        """The tail of a new stream, which puts the template around its ids."""
        ...

    def encode(
        self,
        tail: Tail,
        chunk: Text,
        final: bool,
        output: Output[Result],
        limit: int,
    ) -> Result:
        """As `Tail.encode`, also its errors. PLACES are followed by pairs, of each change, the
        first one first: what `AlignmentMap.fed` takes, and whether the last of it may take in more
        text. A call that raises changes nothing.
        """
        ...

    def getstate(self, tail: Tail) -> bytes:
        """All that is needed to go on elsewhere."""
        ...

    def setstate(self, tail: Tail, state: bytes) -> None:
        """Put a tail where `getstate` was called. Raises StateError; the tail is then as before."""
        ...
