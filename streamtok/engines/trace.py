"""Where in its text each id of a stream came from.

A `Trace` is what a stream keeps for that beside its tail: the text that waits, how far that is from
the beginning in each unit, the way back (`alignment.py`) from a text that was changed, and the last
ids, as long as the next text may make their spans longer: by what a normalizer leaves out, or white
space after a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._core.encode import PLACES
from .alignment import AlignmentMap
from .rewriting_chain import check_pending
from .source_units import BEGIN, SourceText
from .template import NO_TEMPLATE, Template

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._core.encode import Tail
    from .._types import IdArray
    from .protocol import Chain
    from .token_sizes import TokenSizes

    Offsets = npt.NDArray[np.int64]

__all__ = ["BEGINNING", "Trace", "Tracer"]


class Trace(NamedTuple):
    """Where the next id comes from. Never changed."""

    source: SourceText = BEGIN
    first: AlignmentMap = AlignmentMap()  # from normalized text to the source
    second: AlignmentMap = AlignmentMap()  # from the core's text to normalized text
    held: tuple[int, ...] = ()  # ids that are certain, and whose spans may become longer,
    places: tuple[tuple[int, int], ...] = ()  # and where they are in the core's text
    pending: int = 0  # bytes that wait, with those that are left out and in no span yet


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
    ) -> tuple[IdArray, Offsets, Trace]:
        """(ids, spans in this unit, the trace then). Raises as `Chain.encode`.

        tail: goes on after the chunk. trace: where it was.
        """
        errors = self._errors
        is_begun, reached = bool(tail.tokens_out), tail.reached
        ids, places, *changes = self._chain.encode(tail, chunk, final, PLACES, limit)
        known = trace.first, trace.second
        maps = [one.fed(new) for one, (new, _) in zip(known, changes, strict=False)]
        source = trace.source.fed(chunk, final, errors)
        begin, end = self._template
        added = Template(() if is_begun else begin, end if final else ())
        inner = slice(len(added.before), len(ids) - len(added.after))
        places = self._spans(ids, places, reached)[inner]
        ids = ids[inner]
        if trace.held:
            ids = np.concatenate([np.array(trace.held, ids.dtype), ids])
            places = np.concatenate([np.array(trace.places, np.int64), places])
        n, spans = len(ids), places
        for one, (_, grows) in zip(reversed(maps), reversed(changes), strict=True):
            if grows and not final:
                late = np.flatnonzero(spans[:n, 1] > one.certain_to)
                n = int(late[0]) if len(late) else n
            spans = one.back(spans)
        spans = source.in_unit(spans[:n], unit, errors)
        if self._template != NO_TEMPLATE:
            spans = added.around_spans(spans, source, unit, errors)
        given = added.around(ids[:n])
        if final:
            return given, spans, BEGINNING
        held, places = ids[n:].tolist(), places[n:].tolist()
        low = min([tail.reached, *(start for start, _ in places)])
        for number in reversed(range(len(maps))):
            maps[number] = maps[number].forget(low)
            low = maps[number].last
        pending = source.taken.end - low if maps else tail.pending
        check_pending(pending, source.taken, limit)
        first, second = [*maps, *known[len(maps) :]]
        trace = Trace(
            source.forget(low, errors), first, second, tuple(held), tuple(map(tuple, places)),
            pending,
        )  # fmt: skip
        return given, spans, trace

    def _spans(self, ids: IdArray, places: Offsets, reached: int) -> Offsets:
        """The bytes of the core's text that each id stands for."""
        at, *spans = places.T
        if self._sizes is None:
            return np.ascontiguousarray(places[:, 1:])
        sizes = self._sizes.of_text(ids).astype(np.int64)
        sizes[at] = spans[1] - spans[0]
        ends = reached + np.cumsum(sizes)
        return np.column_stack([ends - sizes, ends])
