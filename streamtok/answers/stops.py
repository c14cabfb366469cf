"""A decoder for serving: it ends at the first of some texts, and never shows a part of one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..chunker import StreamDecoder
from ..errors import StateError

if TYPE_CHECKING:
    from ..definition import EncodingDefinition

__all__ = ["Stop", "StoppingDecoder"]

_MOST = 1 << 16  # characters of a stop string


class Stop(NamedTuple):
    """The text that ended the stream, and at which character of the stream it begins."""

    text: str
    start: int


class _Position(NamedTuple):
    held: str = ""  # may be the beginning of a stop string
    given: int = 0  # characters
    stop: Stop | None = None


_BEGIN = _Position()


class StoppingDecoder(StreamDecoder):
    """Decodes one stream of ids up to the first of its stop strings.

    Text that may be the beginning of a stop string is held back until it is decided. Where one is
    found, the text before it is given out, `stopped` says which and where, and all later ids give
    nothing. The one that begins first counts, and of those the shortest. An exception leaves the
    stream as it was before the call.

    >>> decoder = enc.stream_decoder(stop=["world"])
    >>> [decoder.decode([id]) for id in enc.encode("hello world!")], decoder.stopped
    (['hello', ' ', ''], Stop(text='world', start=6))
    """

    __slots__ = ("_begins", "_finds", "_here", "_longest", "_stops")

    def __init__(
        self,
        encoding: EncodingDefinition,
        stop: str | Iterable[str],
        *,
        errors: str = "replace",
        skip_special_tokens: bool = False,
    ):
        """stop: one text or several. Raises ValueError for an empty one, TypeError for no str."""
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
        # The shortest first: it is complete before a longer one that begins where it does.
        self._finds = re.compile("|".join(map(re.escape, sorted(stops, key=len)))).search
        self._begins = re.compile(f"[{''.join(re.escape(text[0]) for text in stops)}]").search
        self._here = _BEGIN
        super().__init__(encoding, errors=errors, skip_special_tokens=skip_special_tokens)

    def decode(self, ids: Any, final: bool = False) -> str:
        """str: the text that is decided. ids: as for `StreamDecoder.decode`."""
        here = self._here
        if here.stop is not None and self.tokens_in:
            if final:
                super().reset()  # `stopped` can be asked until the next stream begins
            return ""
        before = self._reached()
        if not before[0] and here is not _BEGIN:  # a new stream
            here = _BEGIN
        try:
            text: str = super().decode(ids, final)
            if not here.held and self._begins(text) is None:
                self._here = _Position("", 0 if final else here.given + len(text))
                return text
            given, after = self._decided(here, here.held + text, final)
            if after.stop is not None and final:
                super().reset()
            self._here = after
            return given
        except BaseException:
            self._set_reached(*before)
            self._here = here
            raise

    def _decided(self, here: _Position, text: str, final: bool) -> tuple[str, _Position]:
        found = self._finds(text)
        # A longer stop string that begins earlier may still be on its way.
        held = len(text) if final else self._held_from(text, found.start() if found else len(text))
        if found is not None and found.start() <= held:
            start = found.start()
            return text[:start], _Position("", 0, Stop(found[0], here.given + start))
        if final:
            return text, _BEGIN
        return text[:held], _Position(text[held:], here.given + held)

    def _held_from(self, text: str, limit: int) -> int:
        """The first place before `limit` from which the text may be the beginning of a stop."""
        at = max(len(text) - self._longest + 1, 0)
        while at < limit:
            rest = text[at:]
            if any(len(rest) < len(stop) and stop.startswith(rest) for stop in self._stops):
                return at
            at += 1
        return limit

    def decode_bytes(self, ids: Any, final: bool = False) -> bytes:
        """Raise TypeError: stop strings are texts."""
        raise TypeError("a decoder with stop strings gives text: call decode")

    @property
    def stopped(self) -> Stop | None:
        """Stop | None: the stop string that was found; None if there was none so far."""
        return self._here.stop

    @property
    def held(self) -> str:
        """str: text that waits because it may be the beginning of a stop string."""
        return self._here.held

    def reset(self) -> None:
        """Begin a new stream; what was held is forgotten."""
        super().reset()
        self._here = _BEGIN

    def copy(self) -> StoppingDecoder:
        """StoppingDecoder: an independent stream in the same state."""
        twin = StoppingDecoder(
            self._encoding, self._stops, errors=self._errors, skip_special_tokens=self._skip
        )
        twin._set_reached(*self._reached())
        twin._here = self._here
        return twin

    __copy__ = copy

    def getstate(self) -> bytes:
        """bytes: all that is needed to continue elsewhere after `tokens_in` ids."""
        known = super().getstate()
        own = json.dumps([list(self._stops), *self._here]).encode()
        return len(known).to_bytes(8, "little") + known + own

    def setstate(self, state: bytes) -> None:
        """Continue where `getstate` was called, with the same stop strings. Raises StateError; the
        stream is then as before.
        """
        state = bytes(memoryview(state))
        size = int.from_bytes(state[:8], "little")
        try:
            stops, held, given, stop = json.loads(state[8 + size :])
            if type(held) is not str or type(given) is not int or given < 0:
                raise ValueError
            found = None if stop is None else Stop(str(stop[0]), int(stop[1]))
        except (ValueError, TypeError, IndexError):
            raise StateError("the saved decoder state is damaged") from None
        if stops != list(self._stops):
            raise StateError(f"the saved state is of a decoder with the stop strings {stops!r}")
        if len(held) >= self._longest or (found is not None and found.text not in self._stops):
            raise StateError("the saved decoder state is damaged")
        super().setstate(state[8 : 8 + size])
        self._here = _Position(held, given, found)

    def __getstate__(self) -> object:
        return self._encoding, self._stops, self._errors, self._skip, self.getstate()

    def __setstate__(self, value: Any) -> None:
        encoding, stops, errors, skip, state = value
        self.__init__(encoding, stops, errors=errors, skip_special_tokens=skip)  # type: ignore[misc]
        self.setstate(state)
