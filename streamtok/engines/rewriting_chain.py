"""Streams of text that is changed before the pattern cuts it: see `stretches.py`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .._core.encode import PLACES, ChangedNote, Tail, bytes_of, feed_changed
from ..errors import DisallowedSpecialError, PendingLimitExceeded, StateError
from ..normalizers.compiled import AT_BEGIN, AT_FIRST
from ..normalizers.links import unread_by
from .added_tokens import NOTHING_FOUND, Finding
from .chunk_text import NO_BYTES_YET, BytesTaken, characters_of, policy_of
from .offsets import is_identity, total
from .stretches import BEGINNING, Place, RefusedToken, Stages, Walk, place_from_json

if TYPE_CHECKING:
    from .._core.encode import Encoder, Output
    from .._types import Text
    from .offsets import Runs
    from .template import Template

__all__ = ["RewritingChain", "check_pending"]


class RewritingChain:
    """All that changes a text, before a `Tail` whose note is a `ChangedNote`.

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

    def encode(
        self,
        tail: Tail,
        chunk: Text,
        final: bool,
        output: Output[Any],
        limit: int,
    ) -> Any:
        """See `Chain`. Offsets are those of the text that came in."""
        # A plain copy, once: others may write to bytes, and a derived class may have other methods.
        chunk = str.__str__(chunk) if isinstance(chunk, str) else bytes_of(chunk)
        stages, known = self.stages, tail.note
        is_traced = output is PLACES
        # It knows no way back through two normalizers.
        if self.transform is not None and not (is_traced and stages.second is not None):
            result = feed_changed(self.transform, tail, chunk, final, output, limit)
            if result is not None:
                if is_traced:
                    note = tail.note
                    ids, places, rows = result
                    result = ids, places, (rows, note is not None and not note.where)
                return result
        before, place = self._place_of(known)
        taken, text = characters_of(before, chunk, final, self.errors)
        end = taken.reached
        waiting = 0 if known is None else known.pending - len(known.partial)
        walk = Walk(stages, place, waiting, is_traced)
        try:
            walk.feed(text, final)
        except RefusedToken as refused:
            raise DisallowedSpecialError(end - refused.rest, refused.text) from None

        def settle(waiting: int) -> ChangedNote:
            place, waiting = walk.next_place(waiting)
            check_pending(waiting + len(taken.partial), taken, limit)
            return self._note(taken, place, waiting, is_traced)

        try:
            result = tail.encode_parts(walk.parts, final, output, settle, known)
        except DisallowedSpecialError as refused:
            offset = end - walk.bytes_from(refused.offset)
            raise DisallowedSpecialError(offset, refused.text) from None
        return (*result, *walk.traced()) if is_traced else result

    def _place_of(self, known: ChangedNote | None) -> tuple[BytesTaken, Place]:
        """Where the steps go on."""
        if known is None:
            return NO_BYTES_YET, BEGINNING
        taken = BytesTaken(known.partial, known.bytes_in, known.grown)
        if known.place is not None:
            return taken, known.place
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
        return taken, place

    def _note(self, taken: BytesTaken, place: Place, waiting: int, is_traced: bool) -> ChangedNote:
        """The note there, with no place if `feed_changed` can go on.

        waiting: bytes of the text, without those of half a character.
        """
        stages = self.stages
        slow = ChangedNote(*taken, waiting, place)
        runs, others = place.first_runs, place.second_runs
        # Without a first normalizer, `first_runs` are also of what waits for the second.
        if stages.normalizer is None or not is_identity(others):
            runs, others = others, runs
        states = tuple([state for state in (place.first, place.second) if state])
        first = ""
        if states and (unread := unread_by(states[0])) is not None:
            states, first = (unread[0], *states[1:]), unread[1]
        try:
            held = (first + place.raw.held).encode()
        except UnicodeEncodeError:  # bytes that are kept as they are wait
            return slow
        if (
            stages.at_once is None
            or self.transform is None
            or place.raw[1:] != NOTHING_FOUND[1:]
            or (is_traced and first and stages.normalizer is None)  # its rows were given
            or (place.first is not None and states != stages.at_once.inside)
            or not is_identity(others)
        ):
            return slow
        where = 0 if place.first is not None else AT_BEGIN | AT_FIRST * place.is_first
        return ChangedNote(*taken, total(runs)[1], None, where, held, runs)

    def getstate(self, tail: Tail) -> bytes:
        known = tail.note
        before, place = self._place_of(known)
        saved = json.dumps([*before.to_json(), place], separators=(",", ":")).encode()
        return len(saved).to_bytes(8, "little") + saved + tail.getstate(known)

    def setstate(self, tail: Tail, state: bytes) -> None:
        size = int.from_bytes(state[:8], "little")
        saved, rest = state[8 : 8 + size], state[8 + size :]
        if len(state) < 8 or len(saved) < size:
            raise StateError("the saved stream state is damaged: it is too short")
        twin = tail.copy()
        twin.setstate(rest)
        try:
            *known, place = json.loads(saved)
            json.dumps(place, ensure_ascii=False).encode("utf-8", policy_of(self.errors))
            taken = BytesTaken.from_json(known, self.errors)
            loaded, waiting = place_from_json(place, self.stages, twin.pending)
            if waiting > taken.reached:
                raise ValueError("more bytes wait than came in")
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
            raise StateError(f"the saved stream state is damaged: {error}") from None
        tail.setstate(rest, self._note(taken, loaded, waiting, True))


def check_pending(pending: int, taken: BytesTaken, limit: int) -> None:
    """Raise PendingLimitExceeded if so many bytes may not wait."""
    if pending > limit:
        offset = taken.end - pending
        raise PendingLimitExceeded(
            f"{pending} bytes from offset {offset} of the stream would have to wait, "
            f"max_pending allows {limit}",
            offset=offset, pending=pending, limit=limit,
        )  # fmt: skip
