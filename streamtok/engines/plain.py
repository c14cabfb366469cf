"""The engine of nearly all encodings: a vocabulary and a pattern that has tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.encode import ARRAY, Encoder, Tail
from .template import NO_TEMPLATE, Template

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher
    from .._types import IdArray, Text

__all__ = ["PlainEngine"]


class PlainEngine:
    """The core's own `Encoder`."""

    __slots__ = ("encode", "encoder")

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.encode = encoder.encode  # no Python function in between

    def encode_left(self, text: Text, matcher: SpecialMatcher, errors: str) -> IdArray:
        return self.encoder.encode(text, matcher, errors, ARRAY)

    def rules(self, matcher: SpecialMatcher) -> None:
        """See `Engine`."""

    def tail(self, matcher: SpecialMatcher, errors: str, template: Template = NO_TEMPLATE) -> Tail:
        return Tail(self.encoder, matcher, errors, *template)
