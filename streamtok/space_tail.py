"""A stream whose text has its spaces as SentencePiece wants them (see `rules.py`).

A `SpaceTail` stands before a `Tail`: U+2581 becomes a space, a space goes before the text, and
offsets in what the tail says are translated back to offsets in the text.
"""

from __future__ import annotations

import bisect
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ._core.guard import Guard
from ._core.text import bytes_of
from .errors import PendingLimitExceeded, StateError
from .rules import MARK

if TYPE_CHECKING:
    from ._core.stream import Tail
    from .encoding import Text

__all__ = ["SpaceTail"]

_MARK = MARK.encode()
_STATE = struct.Struct("<BQQQI")


@dataclass
class _Place:
    """Where a stream of text stands; offsets with a hat count what the tail was given."""

    held: bytes = b""  # not given to the tail yet: the start of a mark or of a special token
    is_begun: bool = False
    prefix: int = 0  # bytes put before the text
    bytes_in: int = 0
    given: int = 0
    marks_gone: int = 0  # marks before what is pending
    marks: list[int] = field(default_factory=list)  # hat offsets of those in what is pending

    def original(self, offset: int) -> int:
        """The offset in the text of what the tail has at `offset`."""
        marks = self.marks_gone + bisect.bisect_left(self.marks, offset)
        return offset - self.prefix + marks * (len(_MARK) - 1)

    def forgetting(self, offset: int) -> _Place:
        """This place without the marks before `offset`."""
        gone = bisect.bisect_left(self.marks, offset)
        if not gone:
            return self
        return replace(self, marks_gone=self.marks_gone + gone, marks=self.marks[gone:])


class SpaceTail:
    """A `Tail` whose text has its spaces as SentencePiece wants them. One call at a time.

    The tail says whether a call happened: there are the place before it and the one behind it, and
    the one that counts is that with as many bytes given as the tail has taken in. So there is
    nothing to put back where a call fails.
    """

    def __init__(self, tail: Tail, specials: tuple[bytes, ...], space_first: bool) -> None:
        self.tail = tail
        self.specials = specials
        self.space_first = space_first
        self._guard = Guard()
        self.place = _Place()

    @property
    def place(self) -> _Place:
        """_Place: where the stream stands; not to be changed."""
        before, after = self._places
        # Without a byte given both are true for the tail, and the call is not over.
        return after if after.given == self.tail.bytes_in != before.given else before

    @place.setter
    def place(self, place: _Place) -> None:
        self._places = place, place

    @property
    def pending(self) -> int:
        """int: bytes of the text that wait."""
        place = self.place
        return place.bytes_in - max(place.original(place.given - self.tail.pending), 0)

    @property
    def bytes_in(self) -> int:
        """int: bytes of text taken in."""
        return self.place.bytes_in

    @property
    def tokens_out(self) -> int:
        """int: ids given out."""
        return self.tail.tokens_out

    def reset(self) -> None:
        """Forget everything but the settings."""
        with self._guard:
            self._places = self.place, _Place()
            self.tail.reset()
            self.place = _Place()

    def copy(self) -> SpaceTail:
        """An independent one in the same state."""
        with self._guard:
            twin = SpaceTail(self.tail.copy(), self.specials, self.space_first)
            twin.place = _copied(self.place)
        return twin

    def encode(self, chunk: Text, final: bool, into: str, out: Any, limit: int) -> Any:
        """As `Tail.encode`."""
        with self._guard:
            before = self.place
            place = _copied(before)
            given = self._given(place, chunk, final)
            after = _Place() if final else place
            self._places = before, after
            try:
                result = self.tail.encode(given, final, into, out, limit)
            except UnicodeDecodeError as error:
                start, end = place.original(error.start), place.original(error.end)
                raise UnicodeDecodeError(
                    "utf-8", error.object, max(start, 0), end, error.reason
                ) from None
            except PendingLimitExceeded as error:
                offset = max(place.original(error.offset), 0)
                waiting = place.bytes_in - offset
                raise PendingLimitExceeded(
                    f"{waiting} bytes from offset {offset} of the stream would have to wait, "
                    f"max_pending allows {limit}",
                    offset=offset, pending=waiting, limit=limit,
                ) from None  # fmt: skip
            if type(result) is tuple:
                return max(place.original(result[0]), 0), result[1]
            self.place = after.forgetting(after.given - self.tail.pending)
            return result

    def _given(self, place: _Place, chunk: Text, final: bool) -> Text:
        """What the tail gets, after `place` has moved on."""
        policy = "surrogateescape" if self.tail.errors == "surrogateescape" else "strict"
        is_text = isinstance(chunk, str)
        data = str.encode(chunk, "utf-8", policy) if isinstance(chunk, str) else bytes_of(chunk)
        place.bytes_in += len(data)
        if is_text and place.held and place.is_begun and data:
            raise UnicodeDecodeError(
                "utf-8", place.held, place.bytes_in - len(data) - len(place.held),
                place.bytes_in - len(data), "a str chunk follows bytes that end inside a character",
            )  # fmt: skip
        data = place.held + data
        place.held = b""
        if not place.is_begun and data:
            if not final and any(s.startswith(data) and s != data for s in self.specials):
                place.held = data
                return b""
            place.is_begun = True
            if self.space_first and not data.startswith(self.specials):
                place.prefix = 1
        if not final:
            size = 2 if data.endswith(_MARK[:2]) else 1 if data.endswith(_MARK[:1]) else 0
            data, place.held = data[: len(data) - size], data[len(data) - size :]
        prefix = b" " if place.prefix and place.given == 0 and (data or place.held) else b""
        at = place.given + len(prefix)
        parts = data.split(_MARK)
        for part in parts[:-1]:
            at += len(part) + 1
            place.marks.append(at - 1)
        place.given = at + len(parts[-1])
        given = prefix + b" ".join(parts)
        # As text, where it is: the tail then sees to it that no unfinished character is before it.
        return given.decode("utf-8", policy) if is_text else given

    def getstate(self) -> bytes:
        """As `Tail.getstate`."""
        with self._guard:
            p = self.place
            state = self.tail.getstate()
        flags = p.prefix | p.is_begun << 1
        head = _STATE.pack(flags, p.bytes_in, p.given, p.marks_gone, len(p.marks))
        marks = struct.pack(f"<{len(p.marks)}Q", *p.marks)
        return head + marks + bytes([len(p.held)]) + p.held + state

    def setstate(self, state: bytes) -> None:
        """As `Tail.setstate`."""
        try:
            flags, bytes_in, given, gone, count = _STATE.unpack_from(state)
            at = _STATE.size
            marks = list(struct.unpack_from(f"<{count}Q", state, at))
            at += 8 * count
            size = state[at]
        except (struct.error, IndexError):
            raise StateError("the saved stream state is damaged") from None
        held = state[at + 1 : at + 1 + size]
        with self._guard:
            after = _Place(held, bool(flags & 2), flags & 1, bytes_in, given, gone, marks)
            self._places = self.place, after
            self.tail.setstate(state[at + 1 + size :])
            self.place = after


def _copied(place: _Place) -> _Place:
    return replace(place, marks=list(place.marks))
