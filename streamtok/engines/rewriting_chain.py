"""Streams of text that is changed before the pattern cuts it: see `stretches.py`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import Tail, UntouchedNote, bytes_of, utf8_size
from ..errors import PendingLimitExceeded, StateError
from .added_tokens import NOTHING_FOUND
from .chunk_text import NO_BYTES_YET, BytesTaken, characters_of, policy_of
from .stretches import BEGINNING, Place, RefusedToken, Stages, Walk, place_from_json

if TYPE_CHECKING:
    from .._types import Text
    from .protocol import Chain
    from .shortcut import Shortcut

__all__ = ["RewritingChain"]


class _Note(NamedTuple):
    """Where a stream stands. Never changed."""

    taken: BytesTaken = NO_BYTES_YET
    place: Place = BEGINNING
    pending: int = 0


class _PlainPart(NamedTuple):
    """Text that goes to the core with its tokens."""

    text: str | memoryview
    size: int  # in bytes
    kept: str  # what follows it, and waits
    given: int  # what the core was given before it
    at: int  # its offset in the stream

    def keep_back(self, walk: Walk, given: int) -> None:
        """Keep what the core has not taken of it, if it has taken `given` bytes in all."""
        rest = self.given + self.size - given
        walk.keep_back(rest, _end_of(self.text, self.size, rest) + self.kept)

    def original(self, offset: int) -> int:
        """The offset in the stream of what the core has at `offset`."""
        return self.at + offset - self.given


def _begin_of(data: str | bytes, size: int) -> str:
    """The first `size` bytes."""
    part = data[:size].encode() if isinstance(data, str) else data
    return part[:size].decode()


def _end_of(data: str | bytes | memoryview, end: int, size: int) -> str:
    """The last `size` bytes of those before `end`, which is where a str ends."""
    if not size:
        return ""
    if isinstance(data, str):
        return data[-size:].encode()[-size:].decode()
    return bytes(data[end - size : end]).decode()


def _between(data: str | bytes, head: int, size: int, kept: str) -> tuple[str | memoryview, int]:
    """Of `size` bytes, those behind the first `head` and before `kept`, and how many they are."""
    plain_size = size - head - utf8_size(kept, False)
    if isinstance(data, str):
        return data[len(_begin_of(data, head)) : len(data) - len(kept)], plain_size
    return memoryview(data)[head : head + plain_size], plain_size


def _noted(taken: BytesTaken, place: Place, pending: int, limit: int) -> _Note:
    """Where a stream stands then. pending: bytes that wait, without those of half a character.

    Raises PendingLimitExceeded.
    """
    pending += len(taken.partial)
    if pending > limit:
        offset = taken.end - pending
        raise PendingLimitExceeded(
            f"{pending} bytes from offset {offset} of the stream would have to wait, "
            f"max_pending allows {limit}",
            offset=offset, pending=pending, limit=limit,
        )  # fmt: skip
    return _Note(taken, place, pending)


def _noted_as(known: _Note | UntouchedNote | None) -> _Note:
    """A tail's note, as this module has it."""
    if not isinstance(known, UntouchedNote):
        return known or _BEGIN
    place = known.place
    if known.has_moved:
        place = place.moved_on(known.held, known.waiting)
    return _Note(BytesTaken("", known.partial, known.bytes_in, known.grown), place, known.pending)


_BEGIN = _Note()
_KINDS = (str, bytes, bytearray, memoryview)
_SHORT = 8  # bytes: below, the short way is not shorter


class RewritingChain:
    """All that changes a text, before a `Tail` whose note is a `_Note`."""

    def __init__(self, inner: Chain, stages: Stages, errors: str) -> None:
        self.tail = inner.tail
        self.stages = stages
        self.errors = errors
        self.path = stages.path

    is_direct = False

    def pending(self, tail: Tail) -> int:
        """See `Chain`."""
        return int((tail.note or _BEGIN).pending)

    def bytes_in(self, tail: Tail) -> int:
        """See `Chain`."""
        return _noted_as(tail.note).taken.bytes_in

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
        """See `Chain`. Offsets are those of the text that came in. seen: gets the walk."""
        if self.path is not None and not final and seen is None:
            result = self.path.feed(tail, chunk, into, out, limit)
            if result is not None:
                return result
        known = tail.note
        before = _noted_as(known)
        if seen is not None:
            from .traced_walk import take_pieces

            way = take_pieces(self.stages, before, chunk, final, self.errors)
        else:
            way = self._short_way(tail, before, chunk, final)
            way = way or self._long_way(before, chunk, final)
        if isinstance(way[0], int):  # a special token that is refused
            return way
        taken, walk, plain = way
        if seen is not None:
            seen.append(walk)

        def settle(waiting: int, given: int) -> _Note | UntouchedNote:
            if plain is not None:
                plain.keep_back(walk, given)
            place, pending = walk.next_place(waiting)
            return self._inside(_noted(taken, place, pending, limit), waiting)

        result = tail.encode_parts(walk.parts, final, into, out, settle, known)
        if type(result) is tuple and plain is not None:
            return plain.original(result[0]), result[1]
        return result

    def _inside(self, note: _Note, waiting: int) -> _Note | UntouchedNote:
        """The note, as the path knows it if the stream is in the middle of untouched text."""
        shortcut, taken, place = self.stages.shortcut, note.taken, note.place
        if self.path is None or shortcut is None:
            return note
        if taken.half or not place.is_inside(shortcut.first):
            return note
        held = place.raw.held
        is_safe = self.stages.raw.first_characters.isdisjoint(held)
        try:
            return UntouchedNote(
                place, held, is_safe, taken.partial, taken.bytes_in, taken.grown, waiting
            )
        except UnicodeEncodeError:  # bytes that are kept as they are wait
            return note

    def _long_way(self, note: _Note, chunk: Text, final: bool) -> Any:
        """(what is taken in then, the walk, None), or (offset, text) of a refused token."""
        taken, text = characters_of(note.taken, chunk, final, self.errors)
        walk = Walk(self.stages, note.place)
        try:
            walk.feed(text, final)
        except RefusedToken as refused:
            return taken.end - len(taken.partial) - refused.rest, refused.text
        return taken, walk, None

    def _short_way(self, tail: Tail, note: _Note, chunk: Text, final: bool) -> Any:
        """(what is taken in then, the walk, the text that goes to the core with its tokens).

        None: the chunk has something that must be looked at.
        """
        shortcut, taken, held = self.stages.shortcut, note.taken, note.place.raw.held
        if shortcut is None or type(chunk) not in _KINDS or taken.half or len(chunk) < _SHORT:
            return None
        walk = Walk(self.stages, note.place)
        walk.raw = NOTHING_FOUND
        if held and self.stages.raw.first_characters.isdisjoint(held):
            walk.normalize(held, False)  # no token begins there, so it needs no copy of the chunk
            held = ""
        data: str | bytes
        if isinstance(chunk, str):
            if taken.partial:
                return None
            data = held + chunk if held else chunk
        else:
            data = chunk if isinstance(chunk, bytes) else bytes_of(chunk)
            waited = held.encode("utf-8", policy_of(self.errors)) + taken.partial
            data = waited + data if waited else data
        found = shortcut.untouched.parts_of(data)
        if found is None or (final and found[4]):
            return None
        size, head, first, last, partial = found
        if head:
            try:
                walk.feed(_begin_of(data, head), False)
            except RefusedToken:
                return None
            if walk.raw.held:
                return None
        bytes_in = taken.bytes_in - len(taken.partial) - utf8_size(held, False) + size + partial
        rest = b"" if isinstance(data, str) else data[size:]
        taken = BytesTaken("", rest, bytes_in, taken.grown)
        end = _end_of(data, size, last)
        if not shortcut.begins_plain:
            text = data if isinstance(data, str) else data[:size].decode()
            text = text[len(_begin_of(data, head)) :]
            if len(text) < 1 + len(end):
                return None
            may_begin, tokens = self.stages.raw.matcher.finds(text, 0, final)
            if tokens or may_begin < len(text):
                return None
            if not walk.feed_middle(text[0], text[1 : -len(end)], size - head - first - last):
                return None
            walk.normalize(end, final)
            return taken, walk, None
        kept = "" if final else self._kept_behind(shortcut, end)
        if kept is None:
            return None
        plain, plain_size = _between(data, head, size, kept)
        walk.feed_plain(plain, plain_size)
        texts = [part for part in walk.parts[:-1] if isinstance(part, str)]
        before = tail.bytes_in + sum([utf8_size(text, True) for text in texts])
        at = taken.end - len(rest) - size + head
        return taken, walk, _PlainPart(plain, plain_size, kept, before, at)

    def _kept_behind(self, shortcut: Shortcut, end: str) -> str | None:
        """What waits of `end`, which ends untouched text; None: it may complete a token."""
        kept = shortcut.waits_behind(self.stages.normalizer, end)
        if kept and not self.stages.raw.last_characters.isdisjoint(kept):
            return None
        return kept

    def getstate(self, tail: Tail) -> tuple[str, bytes]:
        """See `Chain`."""
        known = tail.note
        note = _noted_as(known)
        half, partial, bytes_in, grown = note.taken
        value = [partial.hex(), bytes_in, grown, note.place]
        saved = json.dumps(value, separators=(",", ":")).encode()
        return half, len(saved).to_bytes(8, "little") + saved + tail.getstate(known)

    def setstate(self, tail: Tail, state: bytes, half: str) -> None:
        """See `Chain`."""
        size = int.from_bytes(state[:8], "little")
        saved, rest = state[8 : 8 + size], state[8 + size :]
        if len(state) < 8 or len(saved) < size:
            raise StateError("the saved stream state is damaged: it is too short")
        twin = tail.copy()
        twin.setstate(rest)
        try:
            partial, bytes_in, grown, place = json.loads(saved)
            note = self._note(half, bytes.fromhex(partial), bytes_in, grown, place, twin.pending)
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
            raise StateError(f"the saved stream state is damaged: {error}") from None
        tail.setstate(rest, self._inside(note, twin.pending))

    def _note(
        self, half: str, partial: bytes, bytes_in: Any, grown: Any, place: Any, waiting: int
    ) -> _Note:
        """What was saved. Raises ValueError and TypeError for what no stream saves."""
        for number in (bytes_in, grown):
            if type(number) is not int or not 0 <= number < 1 << 62:
                raise ValueError("expected numbers of bytes")
        if (
            len(partial) > 3
            or characters_of(BytesTaken(), partial, False, self.errors)[0].partial != partial
        ):
            raise ValueError("it ends with bytes that do not begin a character")
        taken = BytesTaken(half, partial, bytes_in, grown)
        loaded, pending = place_from_json(place, self.stages, waiting)
        if pending + len(partial) > taken.end:
            raise ValueError("more bytes wait than came in")
        return _Note(taken, loaded, pending + len(partial))
