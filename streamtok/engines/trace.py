"""Trace each id of a stream back to its span of the source text.

For this, a stream keeps a `Trace` besides its tail: the pending text, its offset in each unit, and
the last ids, as long as the next text may extend their spans (by text that a normalizer removes, or
by white space after a token). The tail maps positions in changed text to the source
(`_core/transform/rows_of_text.pxi`).
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
    """The state of tracing between two chunks. Immutable."""

    source: SourceText = BEGIN
    held: tuple[int, ...] = ()  # final ids whose spans may still grow
    held_spans: tuple[tuple[int, int], ...] = ()  # their spans in the core's text
    pending: int = 0  # pending bytes, including removed ones that are in no span yet


BEGINNING = Trace()


class Tracer:
    """Follows streams with the same settings. Immutable."""

    __slots__ = ("_errors", "_sizes", "_template")

    def __init__(self, sizes: TokenSizes | None, errors: str, template: Template) -> None:
        """sizes: of the tokens; None if an id does not determine its size, but the core knows."""
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
        """(ids, spans in `unit`, the new trace). Raises what `Tail.encode` raises.

        tail: advances past the chunk. trace: that before the chunk. chunk: text, a Prompt or a
        t-string.
        """
        errors = self._errors
        prompt = prompt_of(chunk)
        if prompt is not None:
            chunk = prompt
        else:  # one copy: a buffer may change, and a derived class may override methods
            chunk = str.__str__(chunk) if isinstance(chunk, str) else bytes_of(chunk)
        is_begun, reached = bool(tail.tokens_out), tail.reached
        ids, core_spans = tail.encode(chunk, final, ID_SPANS, limit)
        changer = tail.changer
        source = fed_source(trace.source, chunk, final, errors)
        # From here on, the span of each id in the core's text, in bytes.
        if self._sizes is None:
            core_spans = np.ascontiguousarray(core_spans[:, 1:])
        else:
            core_spans = self._sizes.spans(ids, core_spans, reached)
        added = NO_TEMPLATE
        if self._template != NO_TEMPLATE:
            begin, end = self._template
            added = Template(() if is_begun else begin, end if final else ())
            inner = slice(len(added.before), len(ids) - len(added.after))
            ids, core_spans = ids[inner], core_spans[inner]
        if trace.held:
            ids = np.concatenate([np.array(trace.held, ids.dtype), ids])
            core_spans = np.concatenate([np.array(trace.held_spans, np.int64), core_spans])
        given, spans = ids, core_spans
        if changer is not None:
            n, spans = changer.back(core_spans, final)
            given, spans = ids[:n], spans[:n]
        spans = source.in_unit(spans, unit)
        if added != NO_TEMPLATE:
            spans = added.around_spans(spans, source, unit)
            given = added.around(given)
        if final:
            return given, spans, BEGINNING
        held: list[int] = []
        spans_held: list[tuple[int, int]] = []
        low, pending = tail.reached, tail.pending
        if changer is not None:
            held = ids[n:].tolist()
            spans_held = list(map(tuple, core_spans[n:].tolist()))
            low = changer.forget(min([low, *(start for start, _ in spans_held)]))
            pending = source.taken.end - low
            if pending > limit:
                raise PendingLimitExceeded(
                    f"{pending} bytes from offset {low} of the stream would be pending, "
                    f"max_pending allows {limit}",
                    offset=low, pending=pending, limit=limit,
                )  # fmt: skip
        trace = Trace(source.forget(low), tuple(held), tuple(spans_held), pending)
        return given, spans, trace
