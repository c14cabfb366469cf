"""What an encoding asks of its engine, and how it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .._core.encode import check_policy
from ..errors import raise_disallowed_special

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher, Tail, Transform
    from .._types import Text
    from .template import Template

__all__ = ["NO_LIMIT", "Chain", "Engine", "encode_or_refuse", "encode_whole"]

NO_LIMIT = (1 << 63) - 1  # bytes of a whole text that may wait: they are in memory anyway


class Engine(Protocol):
    """Text to ids, for one vocabulary and one pattern. Immutable, shared by threads."""

    def encode(self, text: Text, matcher: SpecialMatcher, errors: str, into: str) -> Any:
        """The ids of a whole text: a list, an array or their number, as `into` says ("list",
        "array", "count"); or (offset in bytes, text) of a special token that `matcher` refuses.

        Raises UnicodeDecodeError ("strict").
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
        into: str,
        out: Any,
        limit: int,
    ) -> Any:
        """As `Engine.encode`; `into` may be "buffer": the ids go into `out`, or "places", as for
        `Tail.encode`, and after these, of each change, the first one first, what
        `AlignmentMap.fed` takes, and whether the last of it may take in more text. `limit`: bytes
        that may wait. A call that raises changes nothing.
        """
        ...

    def getstate(self, tail: Tail) -> bytes:
        """All that is needed to go on elsewhere."""
        ...

    def setstate(self, tail: Tail, state: bytes) -> None:
        """Put a tail where `getstate` was called. Raises StateError; the tail is then as before."""
        ...


def encode_whole(
    engine: Engine,
    text: Text,
    matcher: SpecialMatcher,
    errors: str,
    into: str,
) -> Any:
    """What `engine.encode` gives; a special token that is refused raises ValueError."""
    result = encode_or_refuse(engine, text, matcher, errors, into)
    if type(result) is tuple:
        raise_disallowed_special(*result)
    return result


def encode_or_refuse(
    engine: Engine,
    text: Text,
    matcher: SpecialMatcher,
    errors: str,
    into: str,
) -> Any:
    """As `encode_whole`, but (offset, text) for a special token that is refused."""
    if errors != "strict":
        check_policy(errors)
    return engine.encode(text, matcher, errors, into)
