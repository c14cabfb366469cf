"""The engine of nearly all encodings: a vocabulary and a pattern that has tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core.encode import Encoder, Tail
from ..surrogates import repair_chunk

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher
    from .._types import Text
    from .template import Template

__all__ = ["PlainChain", "PlainEngine"]


class PlainEngine:
    """The core's own `Encoder`."""

    __slots__ = ("encode", "encoder")

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.encode = encoder.encode  # no Python function in between

    def chain(self, matcher: SpecialMatcher, errors: str) -> PlainChain:
        return PlainChain(self.encoder, matcher, errors)


class PlainChain:
    """Nothing is done to chunks but to join surrogate pairs that are cut in two.

    The first half of a pair that ends a chunk is the tail's note.
    """

    __slots__ = ("_new",)

    is_direct = True
    transform = None

    def __init__(self, encoder: Encoder, matcher: SpecialMatcher, errors: str) -> None:
        self._new = encoder, matcher, errors

    def tail(self, template: Template) -> Tail:
        return Tail(*self._new, *template)

    def encode(
        self,
        tail: Tail,
        chunk: Text,
        final: bool,
        into: str,
        out: Any,
        limit: int,
    ) -> Any:
        half: str | None = tail.note
        try:
            if half:
                raise UnicodeEncodeError("utf-8", half, 0, 1, "surrogates not allowed")
            return tail.encode(chunk, final, into, out, limit)
        except UnicodeEncodeError:
            text, rest = repair_chunk(half or "", chunk, final, tail.errors)
            return tail.encode(text, final, into, out, limit, half, rest or None)

    def getstate(self, tail: Tail) -> tuple[str, bytes]:
        half = tail.note
        return half or "", tail.getstate(half)

    def setstate(self, tail: Tail, state: bytes, half: str) -> None:
        tail.setstate(state, half or None)
