"""Where in its text each id of a stream came from.

A `Trace` is what a stream keeps for that beside its tail: the text that waits, how far that is from
the beginning in each unit, and the way back (`alignment.py`) from a text that was changed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import utf8_size
from ..errors import StateError
from ..normalizers.compiled import Changed
from .alignment import AlignmentMap
from .rewriting_chain import RewritingChain
from .source_units import BEGIN, SourceText
from .template import NO_TEMPLATE, Template

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._core.encode import Tail
    from .._types import IdArray
    from .protocol import Chain
    from .stretches import Walk
    from .token_sizes import TokenSizes

    Offsets = npt.NDArray[np.int64]

__all__ = ["BEGINNING", "Trace", "Tracer"]


class Trace(NamedTuple):
    """Where the next id comes from. Never changed."""

    source: SourceText = BEGIN
    at: int = 0  # the bytes before the next id's, as the core has them
    given: int = 0  # bytes that the core was given
    first: AlignmentMap = AlignmentMap()  # from normalized text to the source
    second: AlignmentMap = AlignmentMap()  # from the core's text to normalized text


BEGINNING = Trace()


class Tracer:
    """Follows streams with the same settings. Immutable."""

    __slots__ = ("_chain", "_errors", "_sizes", "_template")

    def __init__(
        self, chain: Chain, sizes: TokenSizes | None, errors: str, template: Template
    ) -> None:
        """sizes: of the ids; None: the core says where they came from, for they do not tell."""
        self._chain = chain
        self._sizes = sizes
        self._errors = errors
        self._template = template

    def encode(
        self, tail: Tail, trace: Trace, chunk: str | bytes, final: bool, unit: str, limit: int
    ) -> Any:
        """(ids, spans in this unit, the trace then), or (offset, text) of a refused token.

        tail: goes on after the chunk. trace: where it was.
        """
        chain, errors = self._chain, self._errors
        seen: list[Any] = []
        is_begun = bool(tail.tokens_out)
        sizes = self._sizes
        into = "array" if sizes is not None else "places"
        ids = chain.encode(tail, chunk, final, into, None, limit, seen)
        if type(ids) is tuple:
            return ids
        places = ids[:, 1:] if sizes is None else None
        if sizes is None:
            ids = ids[:, 0].astype(np.uint32)
        begin, end = self._template
        added = Template(() if is_begun else begin, end if final else ())
        inner = slice(len(added.before), len(ids) - len(added.after))
        own = ids[inner]
        source = trace.source.fed(chunk, final, errors)
        if isinstance(chain, RewritingChain):
            places = None if places is None else places[inner]
            starts, ends, trace = self._walked(trace, seen[0], own, places, tail.reached, final)
            low = trace.first.last
        elif sizes is None:
            assert places is not None
            starts, ends = places[inner].T
            trace = trace._replace(at=tail.reached)
            low = trace.at
        else:
            own_sizes = sizes.of_all(own)
            ends = trace.at + np.cumsum(own_sizes, dtype=np.int64)
            starts = ends - own_sizes
            trace = trace._replace(at=trace.at + int(own_sizes.sum(dtype=np.int64)))
            low = trace.at
        spans = np.empty((len(own), 2), np.int64)
        spans[:, 0], spans[:, 1] = source.in_unit(starts, ends, unit, errors)
        if self._template != NO_TEMPLATE:
            spans = added.around_spans(spans, source, unit, errors)
        if final:
            return ids, spans, BEGINNING
        return ids, spans, trace._replace(source=source.forget(low, errors))

    def _walked(
        self,
        before: Trace,
        walk: Walk,
        ids: IdArray,
        places: Offsets | None,
        reached: int,
        final: bool,
    ) -> tuple[Offsets, Offsets, Trace]:
        """The bytes of the source, in UTF-8, that the ids of a walk come from.

        places: in the core's text, if it says so; reached: the bytes of that before what waits.
        """
        stages = walk.stages
        first = before.first.fed(walk.first_blocks)
        has_second = stages.second is not None or stages.normalized is not None
        second = before.second.fed(walk.second_blocks)
        if places is not None:
            starts, ends = places.T
            found = np.flatnonzero(starts == ends).tolist()  # an id of text has some
            at, given = reached, before.given
        else:
            starts, ends, found, at, given = self._counted(before, walk, ids)
        if has_second:
            starts, ends = second.back(starts, ends)
        starts, ends = first.back(starts, ends)
        # Ids that are parts are not in the core's text.
        if walk.tokens:
            sources = [
                _ends(before.first.source_end, walk.first_blocks),
                _ends(before.second.source_end, walk.second_blocks),
            ]
        for here, (taken, number, is_first) in zip(found, walk.tokens, strict=True):
            end = sources[not is_first][number : number + 1]
            begin = end - utf8_size(taken, True)
            if not is_first:
                begin, end = first.back(begin, end)
            starts[here], ends[here] = begin[0], end[0]
        if final:
            return starts, ends, BEGINNING
        low = at
        if has_second:
            second = second.forget(at)
            low = second.last
        first = first.forget(low)
        return starts, ends, Trace(before.source, at, given, first, second)

    def _counted(
        self, before: Trace, walk: Walk, ids: IdArray
    ) -> tuple[Offsets, Offsets, list[int], int, int]:
        """(where the ids of a walk come from in the core's text; which of them are parts; the bytes
        before the next id's, and those that the core was given).
        """
        assert self._sizes is not None
        sizes = self._sizes.of_text(ids).astype(np.int64)
        places, given = [], before.given
        for part in walk.parts:
            if isinstance(part, int):
                places.append(given)
            elif part is not None:
                given += utf8_size(part, walk.stages.has_escapes)
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
        return ends - sizes, ends, found, before.at + int(sizes.sum()), given

    def saved(self, trace: Trace) -> bytes:
        """What `loaded` takes."""
        source, at, given, first, second = trace
        value = [source.to_json(), at, given, first.to_json(), second.to_json()]
        saved = json.dumps(value, separators=(",", ":")).encode()
        return len(saved).to_bytes(8, "little") + saved

    def loaded(self, state: bytes) -> tuple[Trace, bytes]:
        """A saved trace, and the bytes after it. Raises StateError."""
        size = int.from_bytes(state[:8], "little")
        saved = state[8 : 8 + size]
        if len(state) < 8 or len(saved) < size:
            raise StateError("the saved stream state is damaged: it is too short")
        try:
            source, at, given, first, second = json.loads(saved)
            if not all(type(n) is int and 0 <= n < 1 << 62 for n in (at, given)):
                raise ValueError("expected numbers of bytes")
            trace = Trace(
                SourceText.from_json(source, self._errors), at, given,
                AlignmentMap.from_json(first), AlignmentMap.from_json(second),
            )  # fmt: skip
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
            raise StateError(f"the saved stream state is damaged: {error}") from None
        return trace, state[8 + size :]


def _ends(known: int, blocks: list[Any]) -> Offsets:
    """Where the source of each block ends, and of what is known before them."""
    sizes = [x.size if isinstance(x, Changed) else utf8_size(x[1], True) for x in blocks]
    return np.cumsum([known, *sizes], dtype=np.int64)
