"""Counter: how many tokens a text has that is still being written. It makes no ids."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from .._core.encode import OneCall, one_call, unfinished_size
from ..chunker import StreamEncoder
from ..errors import StateError
from ..parallel.texts import text_view
from .source_text import is_buffer

if TYPE_CHECKING:
    from .._types import AllowedSpecial, DisallowedSpecial, Text
    from ..definition import EncodingDefinition

__all__ = ["Counter"]

_MAGIC = b"streamtok counter 1\n"


class Counter(OneCall):
    """Counts the tokens of one text, chunk by chunk, as `Encoding.count` does for the whole.

    A chunk is str or bytes-like; bytes may be cut anywhere. An exception leaves the counter as it
    was before the call. One thread at a time: a call during another one raises StreamInUseError.

    >>> counter = enc.counter()
    >>> counter.update("hello wor"), counter.total, counter.estimate
    (1, 1, 2)
    >>> counter.update("ld"), counter.finish()
    (0, 2)
    """

    __slots__ = ("_now", "_settings")

    _kind = "counter"
    _now: tuple[StreamEncoder, bytes, int | None]
    """The stream, the beginning of a character that it does not have yet, and the total of a text
    that has ended. They change in one assignment, because signal handlers may raise between two.
    """

    def __init__(
        self,
        encoding: EncodingDefinition,
        *,
        allowed_special: AllowedSpecial = frozenset(),
        disallowed_special: DisallowedSpecial = (),
        errors: str = "strict",
        max_pending: int | None = None,
        add_special_tokens: bool = False,
    ) -> None:
        """Arguments as for `StreamEncoder`, but special tokens are plain text unless it is said
        otherwise. Raises as it does.
        """
        self._settings = (allowed_special, disallowed_special, errors, add_special_tokens)
        stream = StreamEncoder(
            encoding,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            max_pending=max_pending,
            add_special_tokens=add_special_tokens,
        )
        self._now = stream, b"", None

    @one_call
    def update(self, chunk: Text) -> int:
        """int: how many tokens became certain: no later chunk can change them.

        After `finish`, a new text begins. Raises as `StreamEncoder.encode` does. Costs
        O(len(chunk)), and O(pending) where the chunk begins or ends inside a character.
        """
        stream, before, last = self._now
        held = b""
        given: Any = chunk
        if self._settings[2] == "strict" and not isinstance(chunk, str) and is_buffer(chunk):
            given, held = _without_unfinished(before, chunk)
        elif before and isinstance(chunk, str) and chunk:
            twin = stream.copy()  # it knows what to say about a str here
            twin.encode(before)
            twin.encode(chunk)
        elif before:
            held = before
        if before or held or last is not None:
            stream = stream.copy()  # else there is nothing else to change with it
        found = self._feed(stream, given, False)
        self._now = stream, held, None
        return found

    @property
    def total(self) -> int:
        """int: the certain tokens so far; after `finish`, all tokens of the text."""
        stream, _, last = self._now
        return stream.tokens_out if last is None else last

    @property
    def pending(self) -> int:
        """int: bytes whose tokens are not certain yet."""
        stream, held, _ = self._now
        return stream.pending + len(held)

    @property
    @one_call
    def estimate(self) -> int:
        """int: the total if the text ended here. It goes on all the same.

        With errors="strict", the bytes of a character that is not complete yet are left out. Costs
        O(pending), which is a few bytes as a rule.
        """
        return self._ended()[1]

    @one_call
    def finish(self) -> int:
        """int: the number of tokens of the whole text, which ends here. `total` keeps it until the
        next `update`. Raises UnicodeDecodeError where a character is not complete ("strict").
        """
        stream, held, _ = self._now
        if held:
            twin = stream.copy()
            twin.encode(held)
            twin.flush()  # raises
        ended, total = self._ended()
        self._now = ended, b"", total
        return total

    def _ended(self) -> tuple[StreamEncoder, int]:
        """A stream whose text ends here, and the total then."""
        stream, _, last = self._now
        if last is not None:
            return stream, last
        tokens = stream.tokens_out
        stream = stream.copy()
        return stream, tokens + self._feed(stream, b"", True)

    def _feed(self, stream: StreamEncoder, chunk: Text, final: bool) -> int:
        n: int = stream._feed(chunk, final, "count", None)
        return n

    @one_call
    def copy(self) -> Counter:
        """Counter: an independent one in the same state."""
        twin = Counter.__new__(Counter)
        stream, held, last = self._now
        twin._settings = self._settings
        twin._now = stream.copy(), held, last
        return twin

    __copy__ = copy

    @one_call
    def reset(self) -> None:
        """Begin a new text, from 0."""
        stream = self._now[0].copy()
        stream.reset()
        self._now = stream, b"", None

    @one_call
    def getstate(self) -> bytes:
        """bytes: all that is needed to count on elsewhere, with the same settings."""
        stream, held, total = self._now
        last = b"" if total is None else total.to_bytes(8, "little")
        body = bytes([len(last), len(held)]) + last + held + stream.getstate()
        return _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body

    @one_call
    def setstate(self, state: bytes) -> None:
        """Continue where `getstate` was called. Raises StateError, as `StreamEncoder.setstate`."""
        if not isinstance(state, bytes | bytearray | memoryview):
            raise TypeError(f"a saved counter state is bytes, not {type(state).__name__}")
        state = bytes(state)
        start = len(_MAGIC) + 4
        body = state[start:]
        if not state.startswith(_MAGIC):
            raise StateError("these bytes are not a saved counter state of this version")
        if zlib.crc32(body).to_bytes(4, "little") != state[start - 4 : start] or len(body) < 2:
            raise StateError("the saved counter state is damaged")
        last, rest = body[2 : 2 + body[0]], body[2 + body[0] :]
        held, rest = rest[: body[1]], rest[body[1] :]
        if body[0] not in (0, 8) or body[1] > 3:
            raise StateError("the saved counter state is damaged: it holds too much")
        stream = self._now[0].copy()
        stream.setstate(rest)
        self._now = stream, held, int.from_bytes(last, "little") if last else None

    def __getstate__(self) -> object:
        stream = self._now[0]
        return stream.encoding, self._settings, stream.max_pending, self.getstate()

    def __setstate__(self, value: Any) -> None:
        encoding, (allowed, disallowed, errors, *more), max_pending, state = value
        self.__init__(  # type: ignore[misc]
            encoding,
            allowed_special=allowed,
            disallowed_special=disallowed,
            errors=errors,
            max_pending=max_pending,
            add_special_tokens=more == [True],  # saved by 0.1.0 without it
        )
        self.setstate(state)

    def __repr__(self) -> str:
        name = self._now[0].encoding.name
        return f"<Counter of {name!r}: {self.total} tokens, {self.pending} bytes pending>"


def _without_unfinished(held: bytes, chunk: Any) -> tuple[Any, bytes]:
    """(held + chunk without the unfinished character at the end, the bytes of that one)."""
    data: Any = text_view(chunk)
    if held:
        data = held + bytes(data)
    end = len(data) - unfinished_size(bytes(data[-3:]))
    return data[:end], bytes(data[end:])
