"""A stream whose text has its spaces as SentencePiece wants them (see `spaces.py`).

U+2581 becomes a space, a space goes before the text, and offsets in what the tail says are
translated back to offsets in the text.
"""

from __future__ import annotations

import bisect
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import bytes_of
from ..errors import PendingLimitExceeded, StateError
from ..surrogates import decode_begun, repair_chunk
from .rules import MARK

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._core.encode import Tail
    from .._types import Text
    from .protocol import Chain

    Offsets = npt.NDArray[np.int64]

__all__ = ["SpaceChain", "without_marks"]

_MARK = MARK.encode()
_STATE = struct.Struct("<BQQQI")


@dataclass
class _Place:
    """Where a stream of text stands; offsets with a hat count what the tail was given.

    Never changed once the tail has it.
    """

    half: str = ""  # the first half of a surrogate pair that ended a str chunk
    held: bytes = b""  # not given to the tail yet: the start of a mark or of a special token
    is_begun: bool = False
    prefix: int = 0  # bytes put before the text
    bytes_in: int = 0
    grown: int = 0  # bytes that repair added; offsets are those of the repaired text
    given: int = 0
    marks_gone: int = 0  # marks before what is pending
    marks: list[int] = field(default_factory=list)  # hat offsets of those in what is pending

    @property
    def end(self) -> int:
        """The offset in the text of the next chunk."""
        return self.bytes_in + self.grown

    def original(self, offset: int) -> int:
        """The offset in the text of the tail's byte at `offset`."""
        marks = self.marks_gone + bisect.bisect_left(self.marks, offset)
        return max(offset - self.prefix + marks * (len(_MARK) - 1), 0)

    def tail_limit(self, limit: int) -> int:
        """How much the tail may hold back, so that no more than `limit` bytes of the text wait.

        Negative: what it was not given is too much already.
        """
        if self.end <= limit:
            return self.given
        first = bisect.bisect_left(range(self.given + 1), self.end - limit, key=self.original)
        return self.given - first

    def without_marks_before(self, offset: int) -> _Place:
        """A copy that may be changed, and forgets the marks before `offset`."""
        gone = bisect.bisect_left(self.marks, offset)
        return replace(self, marks_gone=self.marks_gone + gone, marks=self.marks[gone:])


_BEGIN = _Place()


class SpaceChain:
    """SentencePiece's spaces, before a `Tail` whose note is a `_Place`."""

    is_direct = False  # every chunk must come through here
    transform = None

    def __init__(self, inner: Chain, specials: tuple[bytes, ...], space_first: bool) -> None:
        self.tail = inner.tail
        self.specials = specials
        self.space_first = space_first

    def pending(self, tail: Tail) -> int:
        """See `Chain`."""
        place = tail.note or _BEGIN
        return int(place.end - place.original(place.given - tail.pending))

    def bytes_in(self, tail: Tail) -> int:
        """See `Chain`."""
        return int((tail.note or _BEGIN).bytes_in)

    def encode(
        self,
        tail: Tail,
        chunk: Text,
        final: bool,
        into: str,
        out: Any,
        limit: int,
        seen: list[Any] | None = None,
    ) -> Any:
        """See `Chain`. seen: gets the offset, for `without_marks`."""
        known = tail.note
        before: _Place = known or _BEGIN
        place = before.without_marks_before(before.given - tail.pending)
        given = self._given(tail, place, chunk, final)
        if seen is not None:
            seen.append(place)
        try:
            most = place.given if final else place.tail_limit(limit)
            if most < 0:
                raise PendingLimitExceeded("", offset=place.given, pending=0, limit=limit)
            result = tail.encode(given, final, into, out, most, known, place)
        except UnicodeDecodeError as error:
            start, end = place.original(error.start), place.original(error.end)
            raise UnicodeDecodeError("utf-8", error.object, start, end, error.reason) from None
        except PendingLimitExceeded as error:
            offset = place.original(error.offset)
            waiting = place.end - offset
            raise PendingLimitExceeded(
                f"{waiting} bytes from offset {offset} of the stream would have to wait, "
                f"max_pending allows {limit}",
                offset=offset, pending=waiting, limit=limit,
            ) from None  # fmt: skip
        if type(result) is tuple:
            return place.original(result[0]), result[1]
        return result

    def _given(self, tail: Tail, place: _Place, chunk: Text, final: bool) -> Text:
        """What the tail gets, after `place` has moved on."""
        errors = tail.errors
        policy = "surrogateescape" if errors == "surrogateescape" else "strict"
        is_text = isinstance(chunk, str) and str.__len__(chunk) > 0
        waiting = _unfinished(tail.partial or place.held)
        if is_text and policy == "strict" and waiting:
            raise UnicodeDecodeError(
                "utf-8", waiting, place.bytes_in - len(waiting), place.bytes_in,
                "a str chunk follows bytes that end inside a character",
            )  # fmt: skip
        if place.half:
            chunk, place.half = repair_chunk(place.half, chunk, final, errors)
        if isinstance(chunk, str):
            try:
                data = str.encode(chunk, "utf-8", policy)
            except UnicodeEncodeError:
                chunk, place.half = repair_chunk("", chunk, final, errors)
                data = chunk.encode("utf-8", policy)
        else:
            data = bytes_of(chunk)
        place.bytes_in += len(data)
        data = place.held + data
        place.held = b""
        if errors == "replace" and not is_text:
            text, place.held = decode_begun(data, final)
            repaired = text.encode()
            place.grown += len(repaired) - (len(data) - len(place.held))
            data = repaired
        if not place.is_begun and data:
            if not final and any(s.startswith(data) and s != data for s in self.specials):
                place.held = data + place.held
                return b""
            place.is_begun = True
            if self.space_first and not data.startswith(self.specials):
                place.prefix = 1
        if not final and not place.held:
            size = 2 if data.endswith(_MARK[:2]) else 1 if data.endswith(_MARK[:1]) else 0
            if size == len(data) and policy == "strict" and tail.partial:
                size = 0  # it cannot follow an unfinished character: the tail refuses it
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

    def getstate(self, tail: Tail) -> tuple[str, bytes]:
        """See `Chain`."""
        known = tail.note
        p: _Place = known or _BEGIN
        flags = p.prefix | p.is_begun << 1 | (p.grown > 0) << 2
        head = _STATE.pack(flags, p.bytes_in, p.given, p.marks_gone, len(p.marks))
        marks = struct.pack(f"<{len(p.marks)}Q", *p.marks)
        grown = p.grown.to_bytes(8, "little") if p.grown else b""
        held = bytes([len(p.held)]) + p.held
        return p.half, head + marks + grown + held + tail.getstate(known)

    def setstate(self, tail: Tail, state: bytes, half: str) -> None:
        """See `Chain`."""
        try:
            flags, bytes_in, given, gone, count = _STATE.unpack_from(state)
            at = _STATE.size
            marks = list(struct.unpack_from(f"<{count}Q", state, at))
            at += 8 * count
            grown = 0
            if flags & 4:
                (grown,) = struct.unpack_from("<Q", state, at)
                at += 8
            size = state[at]
        except (struct.error, IndexError):
            raise StateError("the saved stream state is damaged: it is too short") from None
        held = state[at + 1 : at + 1 + size]
        if max(bytes_in, given, gone, grown) >> 62:
            raise StateError("the saved stream state is damaged: it counts too many bytes")
        if flags > 7 or marks != sorted(set(marks)) or (marks and marks[-1] >= given):
            raise StateError("the saved stream state is damaged: positions are not in order")
        place = _Place(half, held, bool(flags & 2), flags & 1, bytes_in, grown, given, gone, marks)
        tail.setstate(state[at + 1 + size :], place)


def without_marks(place: Any, offsets: Offsets) -> Offsets:
    """`place.original` of each offset."""
    marks = place.marks_gone + np.searchsorted(np.array(place.marks, np.int64), offsets, "left")
    found: Offsets = np.maximum(offsets - place.prefix + 2 * marks, 0)
    return found


def _unfinished(data: bytes) -> bytes:
    """The beginning of a character that ends the data."""
    return decode_begun(data, False)[1]
