"""What an encoding asks of its engine, and how it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .. import surrogates
from .._core.encode import check_policy
from ..errors import raise_disallowed_special

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher, Tail, UntouchedPath
    from .._types import Text

__all__ = ["Engine", "EngineStream", "encode_or_refuse", "encode_whole"]


class Engine(Protocol):
    """Text to ids, for one vocabulary and one pattern. Immutable, shared by threads."""

    def encode(self, text: Text, matcher: SpecialMatcher, errors: str, into: str) -> Any:
        """The ids of a whole text: a list, an array or their number, as `into` says ("list",
        "array", "count"); or (offset in bytes, text) of a special token that `matcher` refuses.

        Raises UnicodeDecodeError ("strict") and, for lone surrogates, UnicodeEncodeError.
        """
        ...

    def stream(self, matcher: SpecialMatcher, errors: str) -> EngineStream:
        """Begin a stream. Raises UnsupportedPatternError, UnsupportedStreamError."""
        ...


class EngineStream(Protocol):
    """One stream of text: what waits for more of it. One call at a time."""

    @property
    def fast(self) -> Tail | None:
        """What chunks may be given to at once, unless they need repair."""
        ...

    @property
    def path(self) -> UntouchedPath | None:
        """The only way by which they may; None: any."""
        ...

    @property
    def pending(self) -> int: ...
    @property
    def bytes_in(self) -> int: ...
    @property
    def tokens_out(self) -> int: ...
    def encode(self, chunk: Text, final: bool, into: str, out: Any, limit: int) -> Any:
        """As `Engine.encode`; `into` may be "buffer": the ids go into `out`. `limit`: bytes that
        may wait. A call that raises changes nothing.
        """
        ...

    def copy(self) -> EngineStream: ...
    def reset(self) -> None: ...
    def getstate(self) -> tuple[str, bytes]:
        """(the first half of a surrogate pair that waits, or "", the rest of the state)."""
        ...

    def setstate(self, state: bytes, half: str) -> None: ...


def encode_whole(
    engine: Engine,
    text: Text,
    matcher: SpecialMatcher,
    errors: str,
    into: str,
    *,
    repairs: bool = True,
) -> Any:
    """What `engine.encode` gives; a special token that is refused raises ValueError.

    repairs: lone surrogates in a str become U+FFFD, as in tiktoken, instead of raising.
    """
    result = encode_or_refuse(engine, text, matcher, errors, into, repairs=repairs)
    if type(result) is tuple:
        raise_disallowed_special(*result)
    return result


def encode_or_refuse(
    engine: Engine,
    text: Text,
    matcher: SpecialMatcher,
    errors: str,
    into: str,
    *,
    repairs: bool = True,
) -> Any:
    """As `encode_whole`, but (offset, text) for a special token that is refused."""
    if errors != "strict":
        check_policy(errors)
    try:
        return engine.encode(text, matcher, errors, into)
    except UnicodeEncodeError:
        if not repairs or not isinstance(text, str):
            raise
        return engine.encode(surrogates.repair(text, errors), matcher, errors, into)
