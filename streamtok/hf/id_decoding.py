"""DecodeStream: text from ids as they come, as `tokenizers.decoders.DecodeStream` gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .backend import Tokenizer

__all__ = ["DecodeStream"]

_MOST = (1 << 32) - 1  # there is no greater id


class DecodeStream:
    """Decodes the ids of one stream, by any tokenizer that has `decode`.

    An id that there cannot be, below 0 or beyond 32 bits, is one that there is not: it has no text
    and ends no stream.
    """

    __slots__ = ("ids", "prefix", "prefix_index", "skip_special_tokens")

    def __init__(
        self, ids: Sequence[int] | None = None, skip_special_tokens: bool | None = False
    ) -> None:
        """ids: those before the first step, whose text is not emitted."""
        self.ids = [*ids] if ids is not None else []
        self.skip_special_tokens = bool(skip_special_tokens)
        self.prefix: str = ""
        self.prefix_index = 0

    def step(self, tokenizer: Any, id: int | Sequence[int]) -> str | None:
        """str | None: the text that these ids complete; None where there is none yet.

        Raises Exception, whose text begins with "Invalid prefix encountered", where the text so far
        has become another one.
        """
        compiled = tokenizer._decoding() if type(tokenizer) is Tokenizer else None
        if (
            compiled is not None
            and len(self.ids) == self.prefix_index  # no id waits for others
            and type(id) is int
            and (compiled.decodes_bytes or (self.ids and compiled.texts))
        ):
            found = compiled.piece(id, self.skip_special_tokens)
            if found is not None:
                self.ids = [id]
                self.prefix_index = 1
                new_text, self.prefix = found
                return new_text
        if isinstance(id, int):
            new = [id]
        elif isinstance(id, list | tuple) and all(isinstance(one, int) for one in id):
            new = [*id]
        else:
            raise TypeError("StreamInput must be either an integer or a list of integers")
        skip = self.skip_special_tokens
        ids, prefix, index = self.ids, self.prefix, self.prefix_index
        if not prefix and ids:
            before: str = tokenizer.decode(ids, skip)
            if not before.endswith("\ufffd"):
                prefix, index = before, len(ids)
        ids = ids + [one for one in new if 0 <= one <= _MOST]
        text: str = tokenizer.decode(ids, skip)
        goes_on = text.startswith(prefix)
        is_longer = len(text) > len(prefix) if goes_on else _size(text) > _size(prefix)
        if not is_longer or text.endswith("\ufffd"):
            self.ids, self.prefix, self.prefix_index = ids, prefix, index
            return None
        if not goes_on:
            self.ids, self.prefix, self.prefix_index = ids, prefix, index
            raise Exception(
                f"Invalid prefix encountered while decoding stream. Token ID: {id}, "
                f"Expected prefix: {prefix!r}, Actual string: {text!r}"
            )
        self.ids, self.prefix_index = ids[index:], len(ids) - index
        new_text = text[len(prefix) :]
        joins = compiled is not None and compiled.decodes_bytes
        self.prefix = new_text if joins else tokenizer.decode(self.ids, skip)
        return new_text


def _size(text: str) -> int:
    return len(text.encode())
