"""A decoder for serving that ends at the first stop string, and never emits a part of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..chunker import StreamDecoder
from ..errors import StateError

if TYPE_CHECKING:
    from ..definition import Defined

__all__ = ["Stop", "StoppingDecoder"]

_MOST = 1 << 10  # characters of a stop string; a search costs as much for each character of text


class Stop(NamedTuple):
    """The stop string that ended the stream, and its offset in the stream in characters."""

    text: str
    start: int


# The characters emitted so far, 0 after a stop; held text that may begin a stop string; the stop
# string found. A plain tuple for speed, since each call makes one.
_Position: TypeAlias = "tuple[int, str, Stop | None]"
_BEGIN: _Position = 0, "", None


class StoppingDecoder(StreamDecoder):
    """Decodes one stream of ids up to the first of its stop strings.

    Text that may begin a stop string is held back until that is decided. When a stop string is
    found, the text before it is emitted, `stopped` says which one it is and where it begins, and
    later ids produce no text. The stop string that begins first counts; if several begin there, the
    shortest. An exception leaves the stream as it was before the call.

    >>> decoder = enc.stream_decoder(stop=["world"])
    >>> [decoder.decode([id]) for id in enc.encode("hello world!")], decoder.stopped
    (['hello', ' ', ''], Stop(text='world', start=6))
    """

    __slots__ = ("_begins", "_finds", "_longest", "_stops")

    _settles = True

    def __init__(
        self,
        encoding: Defined,
        stop: str | Iterable[str],
        *,
        errors: str = "replace",
        skip_special_tokens: bool = False,
    ):
        """stop: one str or several. Raises TypeError if not str, ValueError for bad lengths."""
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        for text in stops:
            if not isinstance(text, str):
                raise TypeError(f"a stop string is a str, not {type(text).__name__}")
            if not 0 < len(text) <= _MOST:
                raise ValueError(
                    f"a stop string has 1 to {_MOST} characters, but one has {len(text)}"
                )
        if not stops:
            raise ValueError("stop must have at least one text")
        self._stops: Sequence[str] = stops
        self._longest = max(map(len, stops))
        # The shortest first: it is complete before a longer one that begins at the same character.
        self._finds = re.compile("|".join(map(re.escape, sorted(stops, key=len)))).search
        self._begins = re.compile(f"[{''.join(re.escape(text[0]) for text in stops)}]").search
        super().__init__(encoding, errors=errors, skip_special_tokens=skip_special_tokens)

    def _settle(
        self, here: _Position | None, text: str, final: bool
    ) -> tuple[str, _Position | None, bool]:
        """The text to emit, the new position, and whether a stop string was found."""
        given, held, _ = here or _BEGIN  # after a stop, a new stream begins
        if not held and self._begins(text) is None:
            return text, None if final else (given + len(text), "", None), False
        text = held + text
        found = self._finds(text)
        # A longer stop string that begins earlier may still be incomplete.
        at = len(text) if final else self._held_from(text, found.start() if found else len(text))
        if found is not None and found.start() <= at:
            at = found.start()
            return text[:at], (0, "", Stop(found[0], given + at)), True
        return text[:at], None if final else (given + at, text[at:], None), False

    def _held_from(self, text: str, limit: int) -> int:
        """The first offset before `limit` where a stop string may begin; otherwise `limit`."""
        for at in range(max(len(text) - self._longest + 1, 0), limit):
            rest = text[at:]
            if any(len(rest) < len(stop) and stop.startswith(rest) for stop in self._stops):
                return at
        return limit

    def decode_bytes(self, ids: Any, final: bool = False) -> bytes:
        """Raise TypeError: stop strings are text, so only `decode` finds them."""
        raise TypeError("a decoder with stop strings gives text: call decode")

    @property
    def stopped(self) -> Stop | None:
        """Stop | None: the stop string that was found; None if none was found yet."""
        return (self._note or _BEGIN)[2]

    @property
    def held(self) -> str:
        """str: text that is held back because it may begin a stop string."""
        return (self._note or _BEGIN)[1]

    def copy(self) -> StoppingDecoder:
        """StoppingDecoder: an independent stream in the same state."""
        twin = StoppingDecoder(
            self._encoding, self._stops, errors=self._errors, skip_special_tokens=self._skip
        )
        twin._set_reached(*self._reached())
        return twin

    __copy__ = copy

    def getstate(self) -> bytes:
        """Raise StateError: a state has no field for text that is held back."""
        raise StateError("a decoder with stop strings cannot be saved: begin the text again")
