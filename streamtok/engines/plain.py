"""The engine of nearly all encodings: a vocabulary and a pattern that has tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core.encode import Encoder, Tail
from ..surrogates import repair_chunk

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher
    from .._types import Text

__all__ = ["PlainEngine", "PlainStream"]


class PlainEngine:
    """The core's own `Encoder`."""

    __slots__ = ("encode", "encoder")

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.encode = encoder.encode  # no Python function in between

    def stream(self, matcher: SpecialMatcher, errors: str) -> PlainStream:
        """Begin a stream."""
        return PlainStream(Tail(self.encoder, matcher, errors))


class PlainStream:
    """A `Tail`, and before it the repair of surrogate pairs that are cut in two.

    The first half of a pair that ends a chunk is the tail's `note`, which it commits together with
    its own state, or not at all.
    """

    __slots__ = ("fast",)

    path = None

    def __init__(self, tail: Tail) -> None:
        self.fast = tail

    @property
    def pending(self) -> int:
        return self.fast.pending

    @property
    def bytes_in(self) -> int:
        return self.fast.bytes_in

    @property
    def tokens_out(self) -> int:
        return self.fast.tokens_out

    def encode(self, chunk: Text, final: bool, into: str, out: Any, limit: int) -> Any:
        """See `EngineStream`."""
        tail = self.fast
        half: str | None = tail.note
        try:
            if half:
                raise UnicodeEncodeError("utf-8", half, 0, 1, "surrogates not allowed")
            return tail.encode(chunk, final, into, out, limit)
        except UnicodeEncodeError:
            text, rest = repair_chunk(half or "", chunk, final, tail.errors)
            return tail.encode(text, final, into, out, limit, half, rest or None)

    def copy(self) -> PlainStream:
        return PlainStream(self.fast.copy())

    def reset(self) -> None:
        self.fast.reset()

    def getstate(self) -> tuple[str, bytes]:
        """See `EngineStream`."""
        half = self.fast.note
        return half or "", self.fast.getstate(half)

    def setstate(self, state: bytes, half: str) -> None:
        """See `EngineStream`."""
        self.fast.setstate(state, half or None)
