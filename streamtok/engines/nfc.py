"""Normalization to NFC before the pattern, as Hugging Face's Qwen has it.

The text between special and added tokens is normalized. Only whole texts: what a stream would have
to hold back is not worked out here.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, NoReturn

from .._core.encode import SpecialMatcher, bytes_of
from ..errors import UnsupportedStreamError
from .segments import encode_segments

if TYPE_CHECKING:
    from .._types import Text
    from .protocol import Engine

__all__ = ["NfcEngine"]

_NO_SPECIAL = SpecialMatcher([], frozenset(), ())


class NfcEngine:
    """Another engine, behind NFC."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner

    def encode(self, text: Text, matcher: SpecialMatcher, errors: str, into: str) -> Any:
        """See `Engine`."""
        # A plain copy, once: others may write to bytes, and a derived class may have other methods.
        text = str.__str__(text) if isinstance(text, str) else bytes_of(text)
        whole = text if isinstance(text, str) else bytes(text).decode("utf-8", errors)
        if unicodedata.is_normalized("NFC", whole):  # and so is every part of it
            return self.inner.encode(text, matcher, errors, into)
        policy = "surrogateescape" if errors == "surrogateescape" else "strict"

        def encode(segment: bytes) -> Any:
            part = unicodedata.normalize("NFC", segment.decode("utf-8", policy))
            return self.inner.encode(part, _NO_SPECIAL, errors, "array")

        return encode_segments(whole.encode("utf-8", policy), matcher, encode, policy, into)

    def stream(self, matcher: SpecialMatcher, errors: str) -> NoReturn:
        """Raise UnsupportedStreamError."""
        raise UnsupportedStreamError(
            "this encoding normalizes text to NFC, which streams cannot do yet: normalize the text "
            "before, and load the vocabulary without its normalizer"
        )
