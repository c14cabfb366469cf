"""A stream of text that is changed before the pattern cuts it: see `stretches.py`.

It has no state of its own: where it stands is a `_Note`, which the core's `Tail` commits together
with its own state, or not at all. So a call that raises has changed nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import Tail, bytes_of
from ..errors import PendingLimitExceeded, StateError
from .chunk_text import NO_BYTES_YET, BytesTaken, characters_of, policy_of
from .stretches import BEGINNING, Place, RefusedToken, Stages, Walk, place_from_json

if TYPE_CHECKING:
    from .._types import Text

__all__ = ["RewritingStream"]


class _Note(NamedTuple):
    """Where a stream stands. Never changed."""

    taken: BytesTaken = NO_BYTES_YET
    place: Place = BEGINNING
    pending: int = 0


_BEGIN = _Note()
_KINDS = (str, bytes, bytearray, memoryview)
_SHORT = 48  # bytes: below, the short way is not shorter


class RewritingStream:
    """A `Tail`, and before it all that changes its text. One call at a time."""

    fast = None  # every chunk must come through here

    def __init__(self, tail: Tail, stages: Stages, errors: str) -> None:
        self.tail = tail
        self.stages = stages
        self.errors = errors

    @property
    def pending(self) -> int:
        """int: bytes of the text that wait."""
        return int((self.tail.note or _BEGIN).pending)

    @property
    def bytes_in(self) -> int:
        """int: bytes of text taken in."""
        return int((self.tail.note or _BEGIN).taken.bytes_in)

    @property
    def tokens_out(self) -> int:
        """int: ids given out."""
        return self.tail.tokens_out

    def reset(self) -> None:
        """Forget everything but the settings."""
        self.tail.reset()

    def copy(self) -> RewritingStream:
        """An independent one in the same state."""
        return RewritingStream(self.tail.copy(), self.stages, self.errors)

    def encode(self, chunk: Text, final: bool, into: str, out: Any, limit: int) -> Any:
        """See `EngineStream`. Offsets are those of the text that came in."""
        known = self.tail.note
        before: _Note = known or _BEGIN
        short = self._short_way(before, chunk, final)
        if short is not None:
            taken, walk = short
        else:
            taken, text = characters_of(before.taken, chunk, final, self.errors)
            walk = Walk(self.stages, before.place)
            try:
                walk.feed(text, final)
            except RefusedToken as refused:
                return taken.end - len(taken.partial) - refused.rest, refused.text

        def settle(waiting: int, _: int) -> _Note:
            place, pending = walk.next_place(waiting)
            pending += len(taken.partial)
            if pending > limit:
                offset = taken.end - pending
                raise PendingLimitExceeded(
                    f"{pending} bytes from offset {offset} of the stream would have to wait, "
                    f"max_pending allows {limit}",
                    offset=offset, pending=pending, limit=limit,
                )  # fmt: skip
            return _Note(taken, place, pending)

        return self.tail.encode_parts(walk.parts, final, into, out, settle, known)

    def _short_way(self, note: _Note, chunk: Text, final: bool) -> tuple[BytesTaken, Walk] | None:
        """What is taken in then, and the walk, for a chunk that nothing needs to be done to."""
        shortcut, taken, place = self.stages.shortcut, note.taken, note.place
        if shortcut is None or type(chunk) not in _KINDS or taken.half or place.raw.held:
            return None
        if len(chunk) < _SHORT:
            return None
        data: str | bytes
        if isinstance(chunk, str):
            if taken.partial:
                return None
            data = chunk
        else:
            data = chunk if isinstance(chunk, bytes) else bytes_of(chunk)
            data = taken.partial + data if taken.partial else data
        found = shortcut.untouched.accepts(data)
        if found is None:
            return None
        size, head, tail, partial = found
        if (partial and final) or head + tail > size:
            return None
        bytes_in = taken.bytes_in - len(taken.partial) + size + partial
        taken = BytesTaken("", b"", bytes_in, taken.grown)
        walk = Walk(self.stages, place)
        middle: str | memoryview
        if isinstance(data, str):
            first, middle, last = data[0], data[1:-1], data[-1]
        else:
            first, last = data[:head].decode(), data[size - tail : size].decode()
            middle = memoryview(data)[head : size - tail]
            taken = taken._replace(partial=data[size:])
        if not walk.feed_untouched(first, middle, size - head - tail, last, final):
            return None
        return taken, walk

    def getstate(self) -> tuple[str, bytes]:
        """See `EngineStream`."""
        known = self.tail.note
        note: _Note = known or _BEGIN
        half, partial, bytes_in, grown = note.taken
        value = [partial.hex(), bytes_in, grown, note.place]
        saved = json.dumps(value, separators=(",", ":")).encode()
        return half, len(saved).to_bytes(8, "little") + saved + self.tail.getstate(known)

    def setstate(self, state: bytes, half: str) -> None:
        """See `EngineStream`. Raises StateError."""
        size = int.from_bytes(state[:8], "little")
        saved, rest = state[8 : 8 + size], state[8 + size :]
        if len(state) < 8 or len(saved) < size:
            raise StateError("the saved stream state is damaged: it is too short")
        twin = self.tail.copy()
        twin.setstate(rest)
        try:
            partial, bytes_in, grown, place = json.loads(saved)
            note = self._note(half, bytes.fromhex(partial), bytes_in, grown, place, twin.pending)
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
            raise StateError(f"the saved stream state is damaged: {error}") from None
        self.tail.setstate(rest, note)

    def _note(
        self, half: str, partial: bytes, bytes_in: Any, grown: Any, place: Any, waiting: int
    ) -> _Note:
        """What was saved. Raises ValueError and TypeError for what no stream saves."""
        for number in (bytes_in, grown):
            if type(number) is not int or number < 0:
                raise ValueError("expected numbers of bytes")
        if len(partial) > 3 or characters_of(
            BytesTaken(), partial, False, self.errors
        )[0].partial != partial:
            raise ValueError("it ends with bytes that do not begin a character")
        taken = BytesTaken(half, partial, bytes_in, grown)
        loaded, pending = place_from_json(place, self.stages, waiting)
        if pending + len(partial) > taken.end:
            raise ValueError("more bytes wait than came in")
        return _Note(taken, loaded, pending + len(partial))
