"""DecodeStream: text from ids as they come, as `tokenizers.decoders.DecodeStream` gives it."""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .backend import Tokenizer

if TYPE_CHECKING:
    from .compiled_tokenizer import Compiled, Piece

__all__ = ["DecodeStream"]

_MOST = (1 << 32) - 1  # there is no greater id
_MOST_PENDING = 3  # ids that an unfinished character may have: each has a byte, and it lacks one


class DecodeStream:
    """Decodes the ids of one stream, by any tokenizer that has `decode`.

    A character comes with the id that completes it. U+FFFD comes as soon as no later id can make
    another character of it. An id that there cannot be, below 0 or beyond 32 bits, is one that
    there is not: it has no text and ends no stream.
    """

    # The last ids, of which `_n_before` have given their text, `_prefix` or not known yet. Then of
    # a tokenizer whose ids have texts of their own: the bytes of an unfinished character, or None
    # if it was another tokenizer's turn.
    __slots__ = (
        "_ids", "_is_at_start", "_is_between", "_is_broken", "_n_before", "_pending", "_prefix",
        "skip_special_tokens",
    )  # fmt: skip

    def __init__(
        self, ids: Sequence[int] | None = None, skip_special_tokens: bool | None = False
    ) -> None:
        """ids: those before the first step. Their text is not emitted, but for a character that
        they only begin.
        """
        self.skip_special_tokens = bool(skip_special_tokens)
        self._ids = [*ids] if ids is not None else []
        self._n_before = len(self._ids)
        self._prefix: str | None = None
        self._pending: bytes | None = None
        self._is_between = False  # whole characters, so that the next id's text is its own
        self._is_broken = False  # bytes of byte_fallback that are not UTF-8, up to the last id
        self._is_at_start = True  # there was no text yet, not even in the ids of the beginning

    def step(self, tokenizer: Any, id: int | Sequence[int]) -> str | None:
        """str | None: the text that these ids complete; None where there is none yet.

        Raises Exception, whose text begins with "Invalid prefix encountered", where the text so far
        has become another one.
        """
        compiled = None
        if type(tokenizer) is Tokenizer:
            compiled = tokenizer._snapshot.compiled
            if compiled is None or tokenizer._handed_out:
                compiled = tokenizer._now().compiled
        if compiled is None or not compiled.decodes_pieces:
            return self._compare(tokenizer, _ids_in(id), id)
        if self._is_between and type(id) is int:
            piece = compiled.piece(id, self.skip_special_tokens)
            if piece.text is not None:
                self._ids, self._n_before = [id], 1
                return piece.text or None
        begun = self._begin(compiled) if self._pending is None else ""
        new = _ids_in(id)
        pieces = [compiled.piece(one, self.skip_special_tokens) for one in new]
        text = begun + self._text_of(compiled, pieces)
        self._ids = self._ids + [one for one, piece in zip(new, pieces, strict=True) if piece.data]
        if not self._pending:
            self._ids, self._n_before = self._ids[-1:], 1
        self._prefix = None
        self._is_between = not (self._pending or self._is_broken or self._is_at_start)
        return text or None

    def _begin(self, compiled: Compiled) -> str:
        """Read the ids so far; the text of those that have given none yet."""
        self._pending, self._is_broken, self._is_at_start = b"", False, True
        skip, n = self.skip_special_tokens, self._n_before
        before: list[Piece] = []
        for id in reversed(self._ids[:n]):
            piece = compiled.piece(id, skip)
            before.append(piece)
            if piece.text:  # what is before it is complete
                break
        self._text_of(compiled, reversed(before))
        return self._text_of(compiled, [compiled.piece(id, skip) for id in self._ids[n:]])

    def _text_of(self, compiled: Compiled, pieces: Iterable[Piece]) -> str:
        """The text that is certain after these pieces."""
        made = []
        pending = self._pending or b""
        for piece in pieces:
            if not piece.data:
                continue
            if compiled.decodes_bytes:
                data = pending + piece.data
                text, n = utf_8_decode(data, "replace", False)
                pending = data[n:]
            elif not piece.is_byte:
                text = "\ufffd" * len(pending) + (piece.text or "")
                pending, self._is_broken = b"", False
            elif self._is_broken:  # as tokenizers: no byte of such a row counts
                text = "\ufffd"
            else:
                pending += piece.data
                try:
                    text, n = utf_8_decode(pending, "strict", False)
                    pending = pending[n:]
                except UnicodeDecodeError:
                    text, pending, self._is_broken = "\ufffd" * len(pending), b"", True
            if text and self._is_at_start:
                self._is_at_start = False
                text = text.removeprefix(" ") if compiled.drops_space else text
            made.append(text)
        self._pending = pending
        return "".join(made)

    def _compare(self, tokenizer: Any, new: list[int], id: Any) -> str | None:
        """`step` for other tokenizers: what is longer than the text of the last ids.

        Whether U+FFFD at the end is an unfinished character is not known here: it waits for so many
        ids as that may have.
        """
        self._pending, self._is_between = None, False
        skip = self.skip_special_tokens
        ids, n_before, prefix = self._ids, self._n_before, self._prefix
        if prefix is None:
            prefix = tokenizer.decode(ids[:n_before], skip) if n_before else ""
        ids = ids + new
        text: str = tokenizer.decode(ids, skip)
        certain = text
        if text.endswith("\ufffd"):
            has_waited = len(ids) - n_before > _MOST_PENDING
            certain = text[: max(len(text.rstrip("\ufffd")), len(text) - 3)] if has_waited else ""
        if prefix.endswith("\ufffd") and not text.startswith(prefix):
            prefix = prefix.rstrip("\ufffd")  # it was an unfinished character
        goes_on = certain.startswith(prefix)
        is_longer = len(certain) > len(prefix) if goes_on else _size(certain) > _size(prefix)
        if not is_longer:
            self._ids, self._n_before, self._prefix = ids, n_before, prefix
            return None
        if not goes_on:
            self._ids, self._n_before, self._prefix = ids, n_before, prefix
            raise Exception(
                f"Invalid prefix encountered while decoding stream. Token ID: {id}, "
                f"Expected prefix: {prefix!r}, Actual string: {text!r}"
            )
        self._ids = ids[n_before:]
        self._n_before = len(self._ids)
        self._prefix = tokenizer.decode(self._ids, skip)
        if len(certain) < len(text):
            self._prefix = self._prefix[: len(certain) - len(text)]
        return certain[len(prefix) :]


def _ids_in(id: Any) -> list[int]:
    """The ids of a step, without those that there cannot be."""
    if isinstance(id, int):
        new: Sequence[Any] = [id]
    elif isinstance(id, list | tuple) and all(isinstance(one, int) for one in id):
        new = id
    else:
        raise TypeError("StreamInput must be either an integer or a list of integers")
    return [one for one in new if 0 <= one <= _MOST]


def _size(text: str) -> int:
    return len(text.encode())
