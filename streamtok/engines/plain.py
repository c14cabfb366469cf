"""The engine of nearly all encodings: a vocabulary and a pattern that has tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.encode import Encoder, Tail

if TYPE_CHECKING:
    from .._core.encode import Output, SpecialMatcher
    from .._types import Text
    from .protocol import Result
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
    """Nothing is done to chunks."""

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
        output: Output[Result],
        limit: int,
    ) -> Result:
        return tail.encode(chunk, final, output, limit)

    def getstate(self, tail: Tail) -> bytes:
        return tail.getstate()

    def setstate(self, tail: Tail, state: bytes) -> None:
        tail.setstate(state)
