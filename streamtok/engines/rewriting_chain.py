"""Streams of text that is changed before the pattern cuts it: see `stretches.py`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import ChangedNote, Tail, bytes_of, feed_changed
from ..errors import PendingLimitExceeded, StateError
from ..normalizers.compiled import AT_BEGIN, AT_FIRST
from .added_tokens import NOTHING_FOUND, Finding
from .chunk_text import NO_BYTES_YET, BytesTaken, characters_of, policy_of
from .offsets import is_identity, total
from .stretches import BEGINNING, Place, RefusedToken, Stages, Walk, place_from_json

if TYPE_CHECKING:
    from .._core.encode import Encoder
    from .._types import Text
    from .offsets import Runs
    from .template import Template

__all__ = ["RewritingChain"]


class _Note(NamedTuple):
    """Where a stream stands. Never changed."""

    taken: BytesTaken = NO_BYTES_YET
    place: Place = BEGINNING
    pending: int = 0


def _noted(taken: BytesTaken, place: Place, pending: int, limit: int) -> _Note:
    """The state of a stream then. pending: bytes that wait, without those of half a character.

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


_BEGIN = _Note()


class RewritingChain:
    """All that changes a text, before a `Tail` whose note is a `_Note` or a `ChangedNote`.

    Nearly all chunks go by `feed_changed`, which changes them by a table. The others go through the
    steps of the normalizers.
    """

    def __init__(self, encoder: Encoder, stages: Stages, errors: str) -> None:
        self.encoder = encoder
        self.stages = stages
        self.errors = errors
        table = stages.at_once
        self.transform = None if table is None else table.transform

    is_direct = False

    def tail(self, template: Template) -> Tail:
        stages = self.stages
        return Tail(
            self.encoder, stages.raw.matcher, policy_of(self.errors), *template, stages.inner
        )

    def pending(self, tail: Tail) -> int:
        return int((tail.note or _BEGIN).pending)

    def bytes_in(self, tail: Tail) -> int:
        return self._note_of(tail.note).taken.bytes_in

    def encode(
        self,
        tail: Tail,
        chunk: Text,
        final: bool,
        into: str,
        out: Any,
        limit: int,
    ) -> Any:
        """See `Chain`. Offsets are those of the text that came in."""
        # A plain copy, once: others may write to bytes, and a derived class may have other methods.
        chunk = str.__str__(chunk) if isinstance(chunk, str) else bytes_of(chunk)
        stages, known = self.stages, tail.note
        is_traced = into == "places"
        # It knows no way back through two normalizers.
        if self.transform is not None and not (is_traced and stages.second is not None):
            result = feed_changed(self.transform, tail, chunk, final, into, out, limit)
            if result is not None:
                if is_traced and type(result) is list:
                    result[2] = [np.frombuffer(result[2], np.int64).reshape(-1, 3)]
                return result
        before = self._note_of(known)
        taken, text = characters_of(before.taken, chunk, final, self.errors)
        end = taken.end - len(taken.partial)
        walk = Walk(stages, before.place, is_traced)
        try:
            walk.feed(text, final)
        except RefusedToken as refused:
            return end - refused.rest, refused.text

        def settle(waiting: int, given: int) -> _Note | ChangedNote:
            place, pending = walk.next_place(waiting)
            return self._settled(_noted(taken, place, pending, limit), is_traced)

        given = tail.bytes_in
        result = tail.encode_parts(walk.parts, final, into, out, settle, known)
        if type(result) is tuple:
            offset, found = result
            return end - walk.bytes_from(offset, given), found
        if is_traced:
            result += [walk.first_blocks, walk.second_blocks][: 1 + walk.has_second]
        return result

    def _note_of(self, known: _Note | ChangedNote | None) -> _Note:
        """A tail's note, as the steps need it."""
        if not isinstance(known, ChangedNote):
            return known or _BEGIN
        stages = self.stages
        assert stages.at_once is not None
        first = second = None
        if not known.where:
            states = list(stages.at_once.inside)
            first = states.pop(0) if stages.normalizer is not None else ()
            second = states.pop() if states else None
        runs: tuple[Runs, Runs] = known.runs, ()
        if stages.second is not None:
            runs = ((known.waiting, 1, 1),) if known.waiting else (), known.runs
        place = Place(
            Finding(known.held.decode()), bool(known.where & AT_FIRST), first, second=second,
            first_runs=runs[0], second_runs=runs[1],
        )  # fmt: skip
        taken = BytesTaken("", known.partial, known.bytes_in, known.grown)
        return _Note(taken, place, known.pending)

    def _settled(self, note: _Note, is_traced: bool) -> _Note | ChangedNote:
        """The note, as `feed_changed` needs it if it can go on from there."""
        stages, place, taken = self.stages, note.place, note.taken
        runs, others = place.first_runs, place.second_runs
        if not is_identity(others):
            runs, others = others, runs
        states = [state for state in (place.first, place.second) if state]
        try:
            first = "".join(states[0][1:]).encode() if states else b""
            held = first + place.raw.held.encode()
        except UnicodeEncodeError:  # bytes that are kept as they are wait
            return note
        if (
            stages.at_once is None
            or self.transform is None
            or taken.half
            or place.raw[1:] != NOTHING_FOUND[1:]
            or place.first_held + place.second_held > len(first)
            or (is_traced and first and stages.normalizer is None)  # its rows were given
            or (place.first is not None and tuple(x[:1] for x in states) != stages.at_once.inside)
            or not is_identity(others)
        ):
            return note
        where = 0 if place.first is not None else AT_BEGIN | AT_FIRST * place.is_first
        waiting = total(runs)[1]
        return ChangedNote(where, held, taken.partial, runs, waiting, taken.bytes_in, taken.grown)

    def getstate(self, tail: Tail) -> tuple[str, bytes]:
        known = tail.note
        note = self._note_of(known)
        half, *taken = note.taken.to_json()
        value = [*taken, note.place]
        saved = json.dumps(value, separators=(",", ":")).encode()
        return half, len(saved).to_bytes(8, "little") + saved + tail.getstate(known)

    def setstate(self, tail: Tail, state: bytes, half: str) -> None:
        size = int.from_bytes(state[:8], "little")
        saved, rest = state[8 : 8 + size], state[8 + size :]
        if len(state) < 8 or len(saved) < size:
            raise StateError("the saved stream state is damaged: it is too short")
        twin = tail.copy()
        twin.setstate(rest)
        try:
            *taken, place = json.loads(saved)
            known = BytesTaken.from_json([half, *taken], self.errors)
            loaded, pending = place_from_json(place, self.stages, twin.pending)
            pending += len(known.partial)
            if pending > known.end:
                raise ValueError("more bytes wait than came in")
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
            raise StateError(f"the saved stream state is damaged: {error}") from None
        tail.setstate(rest, self._settled(_Note(known, loaded, pending), True))
