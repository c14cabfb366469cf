"""Where in its text each id of a stream came from.

A `Trace` is what a stream keeps for that beside its tail: the text that waits, how far that is from
the beginning in each unit, and the last ids, as long as the next text may make their spans longer:
by what a normalizer leaves out, or white space after a token. The tail knows the way back from a
text that was changed (`_core/transform/rows_of_text.pxi`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import ID_SPANS, bytes_of
from ..errors import PendingLimitExceeded
from ..prompts import prompt_of
from .source_units import BEGIN, SourceText, fed_source
from .template import NO_TEMPLATE, Template

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._core.encode import Tail
    from .._types import IdArray
    from .token_sizes import TokenSizes

    Offsets = npt.NDArray[np.int64]

__all__ = ["BEGINNING", "Trace", "Tracer"]


class Trace(NamedTuple):
    """Where the next id comes from. Never changed."""

    source: SourceText = BEGIN
    held: tuple[int, ...] = ()  # ids that are certain, and whose spans may become longer,
    places: tuple[tuple[int, int], ...] = ()  # and where they are in the core's text
    pending: int = 0  # bytes that wait, with those that are left out and in no span yet


BEGINNING = Trace()


class Tracer:
    """Follows streams with the same settings. Immutable."""

    __slots__ = ("_errors", "_sizes", "_template")

    def __init__(self, sizes: TokenSizes | None, errors: str, template: Template) -> None:
        """sizes: of the ids; None: the core says where they came from, for they do not tell."""
        self._sizes = sizes
        self._errors = errors
        self._template = template

    def encode(
        self,
        tail: Tail,
        trace: Trace,
        chunk: Any,
        final: bool,
        unit: str,
        limit: int,
    ) -> tuple[IdArray, Offsets, Trace]:
        """(ids, spans in this unit, the trace then). Raises as `Tail.encode`.

        tail: goes on after the chunk. trace: where it was. chunk: text, a Prompt or a t-string.
        """
        errors = self._errors
        prompt = prompt_of(chunk)
        if prompt is not None:
            chunk = prompt
        else:  # a copy, once: others may write to bytes, and a derived class may have other methods
            chunk = str.__str__(chunk) if isinstance(chunk, str) else bytes_of(chunk)
        is_begun, reached = bool(tail.tokens_out), tail.reached
        ids, places = tail.encode(chunk, final, ID_SPANS, limit)
        changer = tail.changer
        source = fed_source(trace.source, chunk, final, errors)
        places = self._spans(ids, places, reached)
        added = NO_TEMPLATE
        if self._template != NO_TEMPLATE:
            begin, end = self._template
            added = Template(() if is_begun else begin, end if final else ())
            inner = slice(len(added.before), len(ids) - len(added.after))
            ids, places = ids[inner], places[inner]
        if trace.held:
            ids = np.concatenate([np.array(trace.held, ids.dtype), ids])
            places = np.concatenate([np.array(trace.places, np.int64), places])
        given, spans = ids, places
        if changer is not None:
            n, spans = changer.back(places, final)
            given, spans = ids[:n], spans[:n]
        spans = source.in_unit(spans, unit)
        if added != NO_TEMPLATE:
            spans = added.around_spans(spans, source, unit)
            given = added.around(given)
        if final:
            return given, spans, BEGINNING
        held: list[int] = []
        places_held: list[tuple[int, int]] = []
        low, pending = tail.reached, tail.pending
        if changer is not None:
            held = ids[n:].tolist()
            places_held = list(map(tuple, places[n:].tolist()))
            low = changer.forget(min([low, *(start for start, _ in places_held)]))
            pending = source.taken.end - low
            if pending > limit:
                raise PendingLimitExceeded(
                    f"{pending} bytes from offset {low} of the stream would have to wait, "
                    f"max_pending allows {limit}",
                    offset=low, pending=pending, limit=limit,
                )  # fmt: skip
        trace = Trace(source.forget(low), tuple(held), tuple(places_held), pending)
        return given, spans, trace

    def _spans(self, ids: IdArray, places: Offsets, reached: int) -> Offsets:
        """The bytes of the core's text that each id stands for."""
        if self._sizes is None:
            return np.ascontiguousarray(places[:, 1:])
        return self._sizes.spans(ids, places, reached)
