"""DecodeStream: text from ids as they arrive, as in `tokenizers.decoders.DecodeStream`."""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tokenizers.decoders import DecodeStream as RealStream

from .backend import Tokenizer
from .compiled_tokenizer import NOTHING

if TYPE_CHECKING:
    from .compiled_tokenizer import Compiled

__all__ = ["DecodeStream"]

_MAX_ID = (1 << 32) - 1  # the largest id


class DecodeStream:
    """Decodes the ids of one stream.

    A character is returned with the id that completes it. U+FFFD is returned as soon as no later id
    can complete a character. An id below 0 or beyond 32 bits is treated like an unknown id: it has
    no text and does not end the stream. If streamtok cannot decode for the tokenizer, the real
    `DecodeStream` does the work.
    """

    __slots__ = (
        "_ids", "_is_at_start", "_is_between", "_is_broken", "_pending", "_real",
        "skip_special_tokens",
    )  # fmt: skip

    def __init__(
        self, ids: Sequence[int] | None = None, skip_special_tokens: bool | None = False
    ) -> None:
        """ids: those before the first step. Their text is not returned, except for a character
        that they leave incomplete.
        """
        self.skip_special_tokens = bool(skip_special_tokens)
        self._ids = [*ids] if ids is not None else []
        self._real: Any = None  # the stream of tokenizers, once it has taken over
        self._pending: bytes | None = None  # an unfinished character; None before the first step
        self._is_between = False  # between characters: the next id's text depends on no other
        self._is_broken = False  # the last ids are bytes of byte_fallback that are not UTF-8
        self._is_at_start = True  # no text so far, even in the ids before the first step

    def step(self, tokenizer: Any, id: int | Sequence[int]) -> str | None:
        """str | None: the text that these ids complete; None if there is none yet."""
        compiled = None
        if type(tokenizer) is Tokenizer:
            compiled = tokenizer._snapshot.compiled
            # No check of handed-out parts: decoding depends on the decoder only, and those that
            # streamtok supports cannot be changed in place. A new decoder leaves `compiled` None.
            if compiled is None:
                compiled = tokenizer._now().compiled
        if self._real is not None or compiled is None or not compiled.decodes_pieces:
            return self._step_real(tokenizer, id)
        if self._is_between and type(id) is int:
            piece = compiled.piece(id, self.skip_special_tokens)
            if piece.text is not None:
                return piece.text or None
        if self._pending is None:
            self._begin(compiled)
        text = self._text_of(compiled, _ids_in(id))
        self._is_between = not (self._pending or self._is_broken or self._is_at_start)
        return text or None

    def _step_real(self, tokenizer: Any, id: int | Sequence[int]) -> str | None:
        new = id if type(id) is int and 0 <= id <= _MAX_ID else _ids_in(id)
        if self._real is None:
            before = self._ids if self._pending is None else []
            self._real = RealStream(before, skip_special_tokens=self.skip_special_tokens)
        if type(tokenizer) is Tokenizer:
            tokenizer = tokenizer.real
        return None if new == [] else self._real.step(tokenizer, new)

    def _begin(self, compiled: Compiled) -> None:
        """Feed the ids before the first step, from the last one that has text of its own: all
        text before it is complete.
        """
        self._pending = b""
        n = len(self._ids)
        while n and not compiled.piece(self._ids[n - 1], self.skip_special_tokens).text:
            n -= 1
        self._text_of(compiled, self._ids[max(n - 1, 0) :])

    def _text_of(self, compiled: Compiled, ids: Iterable[int]) -> str:
        """Feed these ids; return the text that is now certain."""
        made = []
        pending = self._pending or b""
        for id in ids:
            piece = compiled.piece(id, self.skip_special_tokens)
            if piece is NOTHING:
                continue
            if compiled.decodes_bytes:
                data = pending + piece.data
                text, n = utf_8_decode(data, "replace", False)
                pending = data[n:]
            elif not piece.is_byte:
                text = "\ufffd" * len(pending) + (piece.text or "")
                pending, self._is_broken = b"", False
            elif self._is_broken:  # as in tokenizers: no byte of the run is valid
                text = "\ufffd"
            else:
                pending += piece.data
                try:
                    text, n = utf_8_decode(pending, "strict", False)
                    pending = pending[n:]
                except UnicodeDecodeError:
                    text, pending, self._is_broken = "\ufffd" * len(pending), b"", True
            if self._is_at_start and (text or compiled.decodes_words):
                self._is_at_start = False
                text = compiled.at_start(text, id, self.skip_special_tokens)
            made.append(text)
        self._pending = pending
        return "".join(made)


def _ids_in(id: Any) -> list[int]:
    """The ids of a step, without those that are out of range."""
    if isinstance(id, int):
        new: Sequence[Any] = [id]
    elif isinstance(id, list | tuple) and all(isinstance(one, int) for one in id):
        new = id
    else:
        raise TypeError("StreamInput must be either an integer or a list of integers")
    return [one for one in new if 0 <= one <= _MAX_ID]
