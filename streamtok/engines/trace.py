"""Where in its text each id of a stream came from.

A `Trace` is what a stream keeps for that beside its tail: the text that waits, how far that is from
the beginning in each unit, and the way back (`alignment.py`) from a text that was changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .alignment import AlignmentMap
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
        errors = self._errors
        is_begun, reached = bool(tail.tokens_out), tail.reached
        found = self._chain.encode(tail, chunk, final, "places", None, limit)
        if type(found) is tuple:
            return found
        ids, places, *rows = found
        maps = [known.fed(new) for known, new in zip(trace[1:], rows, strict=False)]
        source = trace.source.fed(chunk, final, errors)
        begin, end = self._template
        added = Template(() if is_begun else begin, end if final else ())
        spans = self._spans(ids, places, reached)
        spans = spans[len(added.before) : len(ids) - len(added.after)]
        for one in reversed(maps):
            spans = one.back(spans)
        spans = source.in_unit(spans, unit, errors)
        if self._template != NO_TEMPLATE:
            spans = added.around_spans(spans, source, unit, errors)
        if final:
            return ids, spans, BEGINNING
        low = tail.reached
        for number in reversed(range(len(maps))):
            maps[number] = maps[number].forget(low)
            low = maps[number].last
        return ids, spans, Trace(source.forget(low, errors), *maps)

    def _spans(self, ids: IdArray, places: Offsets, reached: int) -> Offsets:
        """The bytes of the core's text that each id stands for."""
        at, *spans = places.T
        if self._sizes is None:
            return np.ascontiguousarray(places[:, 1:])
        sizes = self._sizes.of_text(ids).astype(np.int64)
        sizes[at] = spans[1] - spans[0]
        ends = reached + np.cumsum(sizes)
        return np.column_stack([ends - sizes, ends])
