"""A stream that also says where in its text each id came from.

It stands before the stream of any engine. Both work on a copy that takes the place of the old one
when nothing can fail any more, so a call that raises has changed nothing. What it keeps is the text
that waits, how far that is from the beginning in each unit, and the blocks (`block_map.py`) of a
text that is changed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import OneCall, bytes_of, one_call, utf8_size
from ..errors import StateError
from .block_map import TOKEN, Block, BlockMap, marked, pieces_of
from .chunk_text import characters_of
from .plain import PlainStream
from .rewriting_stream import RewritingStream
from .source_units import BEGIN, SourceText
from .space_tail import SpaceTail
from .stretches import RefusedToken, Walk
from .template import NO_TEMPLATE, Template, fill

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._core.encode import Tail
    from .._types import IdArray, Text
    from .protocol import EngineStream
    from .stretches import Stages
    from .token_sizes import TokenSizes

    Offsets = npt.NDArray[np.int64]

__all__ = ["FollowedStream"]


class _Trace(NamedTuple):
    """Where the next id comes from. Never changed."""

    source: SourceText = BEGIN
    at: int = 0  # the bytes before the next id's, as the core has them
    given: int = 0  # bytes that the core was given
    first: BlockMap = BlockMap()  # from normalized text to the source
    second: BlockMap = BlockMap()  # from the core's text to normalized text
    is_begun: bool = False  # the template's beginning was given out


_BEGIN = _Trace()


class _FollowedSpaces(SpaceTail):
    """A `SpaceTail` that lets others see where its last call stood."""

    place: Any = None

    def _given(self, place: Any, chunk: Text, final: bool) -> Text:
        self.place = place
        return super()._given(place, chunk, final)

    def copy(self) -> _FollowedSpaces:
        return _FollowedSpaces(self.tail.copy(), self.specials, self.space_first)


class _FollowedRewriting(RewritingStream):
    """A `RewritingStream` that lets others see its last walk; it knows no short ways."""

    walk: Any = None

    def __init__(self, tail: Tail, stages: Stages, errors: str) -> None:
        super().__init__(tail, stages, errors)
        self.path = None

    def copy(self) -> _FollowedRewriting:
        return _FollowedRewriting(self.tail.copy(), self.stages, self.errors)

    def _short_way(self, note: Any, chunk: Text, final: bool) -> None:
        return None

    def _long_way(self, note: Any, chunk: Text, final: bool) -> Any:
        taken, text = characters_of(note.taken, chunk, final, self.errors)
        stages = self.stages
        walk = self.walk = _Walk(stages, note.place)
        pieces = pieces_of(text, (stages.normalizer, stages.second))
        for number, piece in enumerate([*pieces, ""] if final else pieces):
            try:
                walk.feed_piece(piece, final and number == len(pieces))
            except RefusedToken as refused:
                has_escapes = stages.has_escapes
                behind = sum([utf8_size(part, has_escapes) for part in pieces[number + 1 :]])
                rest = refused.rest + behind + len(taken.partial)
                return taken.end - rest, refused.text
        return taken, walk, None


class _Walk(Walk):
    """A walk whose blocks are kept as `BlockMap` has them."""

    def feed_piece(self, text: str, final: bool) -> None:
        """Take a piece in. Raises RefusedToken."""
        if not hasattr(self, "marked_blocks"):
            self.marked_blocks: tuple[list[Block], list[Block]] = [], []
        tokens = len(self.tokens)
        known = len(self.first_blocks), len(self.second_blocks)
        self.feed(text, final)
        for which, blocks in enumerate((self.first_blocks, self.second_blocks)):
            at = known[which]
            for taken, number, is_first in [*self.tokens[tokens:], ("", len(blocks), not which)]:
                if is_first == (not which):
                    stop = number - bool(taken)
                    new: list[Any] = blocks[at:stop]
                    self.marked_blocks[which].extend(marked(new))
                    if taken:
                        self.marked_blocks[which].append(("", taken, TOKEN))
                    at = number


class FollowedStream(OneCall):
    """Another stream, which gives the same ids. One call at a time."""

    __slots__ = ("_errors", "_now", "_sizes", "_template")

    _kind = "stream"

    fast = None  # every chunk must come through here
    path = None
    _now: tuple[EngineStream, _Trace]

    def __init__(
        self, inner: EngineStream, sizes: TokenSizes, errors: str, template: Template
    ) -> None:
        """inner: a stream of an engine that has taken nothing in yet. template: goes around it."""
        if isinstance(inner, SpaceTail):
            inner = _FollowedSpaces(inner.tail, inner.specials, inner.space_first)
        elif isinstance(inner, RewritingStream):
            inner = _FollowedRewriting(inner.tail, inner.stages, errors)
        else:
            assert isinstance(inner, PlainStream)
        self._now = inner, _BEGIN
        self._sizes = sizes
        self._errors = errors
        self._template = template

    @property
    def pending(self) -> int:
        return self._now[0].pending

    @property
    def bytes_in(self) -> int:
        return self._now[0].bytes_in

    @property
    def tokens_out(self) -> int:
        inner, trace = self._now
        return inner.tokens_out + len(self._template.before) * trace.is_begun

    @one_call
    def encode(self, chunk: Text, final: bool, into: str, out: Any, limit: int) -> Any:
        """See `EngineStream`."""
        draft = self._now[0].copy()
        if into == "buffer":
            draft.copy().encode(b"", False, into, out, limit)  # raises if `out` is none
        found = self._follow(draft, chunk, final, None, limit)
        ids = found[0]
        if len(found) == 2:
            return found
        result: Any = ids
        if into == "buffer":
            result = fill(out, ids)
        elif into != "array":
            result = ids.tolist() if into == "list" else len(ids)
        self._now = found[2]
        return result

    @one_call
    def encode_with_offsets(self, chunk: Text, final: bool, unit: str, limit: int) -> Any:
        """(ids, spans), or (offset, text) of a special token that is refused."""
        found = self._follow(self._now[0].copy(), chunk, final, unit, limit)
        if len(found) == 2:
            return found
        self._now = found[2]
        return found[:2]

    def _follow(
        self, draft: EngineStream, chunk: Text, final: bool, unit: str | None, limit: int
    ) -> Any:
        """(ids, spans in this unit, what is now then), or (offset, text) of a refused token."""
        if not isinstance(chunk, str):
            chunk = bytes_of(chunk)  # once: others may write to it
        before, errors = self._now[1], self._errors
        ids = draft.encode(chunk, final, "array", None, limit)
        if type(ids) is tuple:
            return ids
        source = before.source.fed(chunk, final, errors)
        if isinstance(draft, _FollowedRewriting):
            starts, ends, trace = self._walked(before, draft.walk, ids)
        else:
            sizes = self._sizes.of_all(ids)
            ends = before.at + np.cumsum(sizes, dtype=np.int64)
            starts = ends - sizes
            trace = before._replace(at=before.at + int(sizes.sum(dtype=np.int64)))
            if isinstance(draft, _FollowedSpaces):
                place = draft.place
                starts, ends = _without_marks(place, starts), _without_marks(place, ends)
        spans = np.empty((len(ids), 2), np.int64)
        if unit is not None:
            spans[:, 0], spans[:, 1] = source.in_unit(starts, ends, unit, errors)
        if self._template != NO_TEMPLATE:
            begin, end = self._template
            added = Template(() if before.is_begun else begin, end if final else ())
            ids = added.around(ids, "array")
            spans = added.around_spans(spans, source, unit or "byte", errors)
        if final:
            return ids, spans, (draft, _BEGIN)
        if isinstance(draft, _FollowedSpaces):
            low = draft.place.original(trace.at)
        else:
            low = trace.first.last if isinstance(draft, _FollowedRewriting) else trace.at
        trace = trace._replace(source=source.forget(low, errors), is_begun=True)
        return ids, spans, (draft, trace)

    def _walked(self, before: _Trace, walk: _Walk, ids: IdArray) -> tuple[Offsets, Offsets, _Trace]:
        """Where the ids of a walk come from in the source's UTF-8."""
        stages = walk.stages
        has_escapes = stages.has_escapes
        blocks: tuple[list[Block], list[Block]] = getattr(walk, "marked_blocks", ([], []))
        first = before.first.fed(blocks[0], has_escapes)
        has_second = stages.second is not None or stages.normalized is not None
        second = before.second.fed(blocks[1], has_escapes)
        sizes = self._sizes.of_text(ids).astype(np.int64)
        places, given = [], before.given
        for part in walk.parts:
            if isinstance(part, int):
                places.append(given)
            elif part is not None:
                given += utf8_size(part, has_escapes)
        reached = before.at + np.concatenate([[0], np.cumsum(sizes)])
        found: list[int] = []
        removed = 0
        for place in places:
            here = int(np.searchsorted(reached, place + removed, "left"))
            here = max(here, found[-1] + 1 if found else 0)
            removed += int(sizes[here])
            found.append(here)
        sizes[found] = 0
        ends = before.at + np.cumsum(sizes)
        at = before.at + int(sizes.sum())
        starts = ends - sizes
        if has_second:
            starts, ends = second.back(starts, ends, has_escapes)
        starts, ends = first.back(starts, ends, has_escapes)
        # Ids that are parts are not in the core's text.
        sources = [
            _ends(before.first.source_end, walk.first_blocks, has_escapes),
            _ends(before.second.source_end, walk.second_blocks, has_escapes),
        ]
        for here, (taken, number, is_first) in zip(found, walk.tokens, strict=True):
            end = sources[not is_first][number : number + 1]
            begin = end - utf8_size(taken, has_escapes)
            if not is_first:
                begin, end = first.back(begin, end, has_escapes)
            starts[here], ends[here] = begin[0], end[0]
        low = at
        if has_second:
            second = second.forget(at, has_escapes)
            low = second.last
        first = first.forget(low, has_escapes)
        return starts, ends, _Trace(before.source, at, given, first, second)

    def copy(self) -> FollowedStream:
        twin = FollowedStream.__new__(FollowedStream)
        inner, trace = self._now
        twin._now = inner.copy(), trace
        twin._sizes, twin._errors = self._sizes, self._errors
        twin._template = self._template
        return twin

    def reset(self) -> None:
        fresh = self._now[0].copy()
        fresh.reset()
        self._now = fresh, _BEGIN

    def getstate(self) -> tuple[str, bytes]:
        """See `EngineStream`. The state of the inner stream follows what this one keeps."""
        inner, trace = self._now
        half, state = inner.getstate()
        source, at, given, first, second, is_begun = trace
        value = [source.to_json(), at, given, first.to_json(), second.to_json()]
        value += [] if self._template == NO_TEMPLATE else [is_begun]
        saved = json.dumps(value, separators=(",", ":")).encode()
        return half, len(saved).to_bytes(8, "little") + saved + state

    def setstate(self, state: bytes, half: str) -> None:
        """See `EngineStream`. Raises StateError."""
        size = int.from_bytes(state[:8], "little")
        saved = state[8 : 8 + size]
        if len(state) < 8 or len(saved) < size:
            raise StateError("the saved stream state is damaged: it is too short")
        inner = self._now[0].copy()
        inner.setstate(state[8 + size :], half)
        has_escapes = self._errors == "surrogateescape"
        try:
            source, at, given, first, second, *begun = json.loads(saved)
            trace = _Trace(
                SourceText.from_json(source, self._errors), at, given,
                BlockMap.from_json(first, has_escapes), BlockMap.from_json(second, has_escapes),
                begun == [True],
            )  # fmt: skip
            numbers = at, given
            if not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
                raise ValueError("expected numbers of bytes")
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
            raise StateError(f"the saved stream state is damaged: {error}") from None
        self._now = inner, trace


def _without_marks(place: Any, offsets: Offsets) -> Offsets:
    """`place.original` of each offset."""
    marks = place.marks_gone + np.searchsorted(np.array(place.marks, np.int64), offsets, "left")
    found: Offsets = np.maximum(offsets - place.prefix + 2 * marks, 0)
    return found


def _ends(known: int, blocks: list[Any], has_escapes: bool) -> Offsets:
    """Where the source of each block ends, and of what is known before them."""
    sizes = [utf8_size(source, has_escapes) for _, source in blocks]
    return np.cumsum([known, *sizes], dtype=np.int64)
