"""Counter: counts the tokens of a text that is still being written, without producing ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.encode import COUNT, OneCall, one_call
from ..chunker import StreamEncoder

if TYPE_CHECKING:
    from .._types import AllowedSpecial, DisallowedSpecial, Text
    from ..definition import Defined
    from ..prompts import Prompt

__all__ = ["Counter"]


class Counter(OneCall):
    """Counts the tokens of one text, chunk by chunk, as `Encoding.count` does for the whole.

    A chunk is str, bytes-like or, as for `StreamEncoder`, a Prompt; bytes may be cut anywhere. An
    exception leaves the counter as it was before the call. Calls must not overlap: a call during
    another one raises StreamInUseError.

    >>> counter = enc.counter()
    >>> counter.update("hello wor"), counter.total, counter.estimate
    (1, 1, 2)
    >>> counter.update("ld"), counter.finish()
    (0, 2)
    """

    __slots__ = ("_now",)

    _kind = "counter"
    _now: tuple[StreamEncoder, int | None]
    """The stream, and the total if the text has ended. Both change in one assignment, because a
    signal handler may raise between two.
    """

    def __init__(
        self,
        encoding: Defined,
        *,
        allowed_special: AllowedSpecial = frozenset(),
        disallowed_special: DisallowedSpecial = (),
        errors: str = "strict",
        max_pending: int | None = None,
        add_special_tokens: bool = False,
    ) -> None:
        """Arguments and exceptions as for `StreamEncoder`, but special tokens are plain text by
        default.
        """
        stream = StreamEncoder(
            encoding,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            max_pending=max_pending,
            add_special_tokens=add_special_tokens,
        )
        self._now = stream, None

    @one_call
    def update(self, chunk: Text | Prompt) -> int:
        """int: the number of tokens that became certain, so that no later chunk can change them.

        After `finish`, a new text begins. Raises the errors of `StreamEncoder.encode`. Costs
        O(len(chunk)).
        """
        stream, last = self._now
        if last is not None:
            stream = stream.copy()  # so that `_now` changes in one assignment below
        found = stream.take(chunk, False, COUNT)
        self._now = stream, None
        return found

    @property
    def total(self) -> int:
        """int: the certain tokens so far; after `finish`, all tokens of the text."""
        stream, last = self._now
        return stream.tokens_out if last is None else last

    @property
    def pending(self) -> int:
        """int: bytes whose tokens are not certain yet."""
        return self._now[0].pending

    @property
    @one_call
    def estimate(self) -> int:
        """int: the total if the text ended here, without ending it.

        With errors="strict", the bytes of an unfinished character are left out. Costs O(pending),
        usually a few bytes.
        """
        stream, last = self._now
        if last is not None:
            return last
        twin = stream.copy()
        if stream.errors == "strict":
            twin.forget_partial()
        return stream.tokens_out + twin.take(b"", True, COUNT)

    @one_call
    def finish(self) -> int:
        """int: end the text and return its number of tokens, which `total` keeps until the next
        `update`. With errors="strict", raises UnicodeDecodeError for an unfinished character.
        """
        stream, last = self._now
        if last is None:
            twin = stream.copy()
            self._now = twin, stream.tokens_out + twin.take(b"", True, COUNT)
        return self.total

    @one_call
    def copy(self) -> Counter:
        """Counter: an independent counter in the same state."""
        twin = Counter.__new__(Counter)
        stream, last = self._now
        twin._now = stream.copy(), last
        return twin

    __copy__ = copy

    @one_call
    def reset(self) -> None:
        """Begin a new text, with a total of 0."""
        stream = self._now[0].copy()
        stream.reset()
        self._now = stream, None

    @one_call
    def __getstate__(self) -> object:
        return self._now

    def __setstate__(self, now: tuple[StreamEncoder, int | None]) -> None:
        self._now = now

    def __repr__(self) -> str:
        name = self._now[0].encoding.name
        return f"<Counter of {name!r}: {self.total} tokens, {self.pending} bytes pending>"
