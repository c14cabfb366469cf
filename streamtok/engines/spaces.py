"""Spaces as SentencePiece has them, in whole texts; `space_chain.py` does it for streams.

U+2581 stands for a space, so that both are the same to the vocabulary. A space is put before the
text unless the text is empty or begins with an allowed special token, which SentencePiece does not
know in texts. Decoding takes one space off the front again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from .._core.encode import bytes_of
from .rules import MARK
from .space_chain import SpaceChain

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher
    from .._types import Text
    from .protocol import Engine

__all__ = ["SpacesEngine"]

_MARK = MARK.encode()


class SpacesEngine:
    """Another engine, after SentencePiece's spaces."""

    def __init__(self, inner: Engine, special_tokens: Collection[str], space_first: bool) -> None:
        self.inner = inner
        self.special_tokens = special_tokens
        self.space_first = space_first

    def encode(self, text: Text, matcher: SpecialMatcher, errors: str, into: str) -> Any:
        """See `Engine`. Offsets are those of `text`."""
        # A plain copy, once: others may write to bytes, and a derived class may have other methods.
        text = str.__str__(text) if isinstance(text, str) else bytes_of(text)
        allowed = self._allowed(matcher)
        try:
            result = self.inner.encode(self._changed(text, allowed), matcher, errors, into)
        except UnicodeDecodeError as error:
            start, end = (self._original(text, at, allowed) for at in (error.start, error.end))
            raise UnicodeDecodeError("utf-8", error.object, start, end, error.reason) from None
        if type(result) is tuple:
            return self._original(text, result[0], allowed), result[1]
        return result

    def chain(self, matcher: SpecialMatcher, errors: str) -> SpaceChain:
        """See `Engine`."""
        specials = tuple(text.encode() for text in self._allowed(matcher))
        return SpaceChain(self.inner.chain(matcher, errors), specials, self.space_first)

    def _allowed(self, matcher: SpecialMatcher) -> list[str]:
        return [text for text in matcher.allowed if text in self.special_tokens]

    def _changed(self, text: Text, allowed: list[str]) -> Text:
        """The text as the vocabulary sees it."""
        if isinstance(text, str):
            is_special = text.startswith(tuple(allowed))
            text = text.replace(MARK, " ")
            return " " + text if self.space_first and text and not is_special else text
        data = bytes(text)
        is_special = data.startswith(tuple(special.encode() for special in allowed))
        data = data.replace(_MARK, b" ")
        return b" " + data if self.space_first and data and not is_special else data

    def _original(self, text: Text, offset: int, allowed: list[str]) -> int:
        """The byte offset in `text` of the byte at `offset` of `_changed(text)`."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        changed = self._changed(data, allowed)
        offset -= len(changed) - len(data.replace(_MARK, b" "))
        original = 0
        for part in data.split(_MARK):
            if offset <= len(part):
                return original + max(offset, 0)
            offset -= len(part) + 1
            original += len(part) + len(_MARK)
        return len(data)
