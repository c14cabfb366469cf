"""Where each token of a whole text came from; streams are in `engines/trace.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._core.encode import COUNT, bytes_of, token_spans
from ..engines.plain import PlainEngine
from ..engines.protocol import NO_LIMIT
from ..engines.source_units import BEGIN, check_unit
from ..engines.template import NO_TEMPLATE

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import IdArray, Text
    from ..engines.token_sizes import TokenSizes
    from .text_settings import Settings

    Spans = npt.NDArray[np.int64]

__all__ = ["encode_with_offsets"]


def encode_with_offsets(settings: Settings, text: Text, unit: str) -> tuple[IdArray, Spans]:
    """See `Encoding.encode_with_offsets`."""
    check_unit(unit)
    # A plain copy, once: others may write to bytes, and a derived class may have other methods.
    text = str.__str__(text) if isinstance(text, str) else bytes_of(text)
    ids, spans = _of_text(settings, text, unit)
    template, errors = settings.template, settings.errors
    if template != NO_TEMPLATE:
        ids = template.around(ids)
        spans = template.around_spans(spans, BEGIN.fed(text, True, errors), unit, errors)
    return ids, spans


def _of_text(settings: Settings, text: str | bytes, unit: str) -> tuple[IdArray, Spans]:
    """Without the template."""
    definition = settings.definition
    engine, pattern, sizes = definition.engine, definition.pattern, definition.token_sizes
    matcher, errors = settings.matcher, settings.errors
    if definition.vocabulary.model is None:
        is_total = pattern is not None and pattern.is_total
        if is_total:
            ids = engine.encode_left(text, matcher, errors)
            if ids is not None and sizes.are_clear_of(ids):
                source = BEGIN.fed(text, True, errors)
                return ids, source.in_unit(_in_bytes(ids, sizes), unit, errors)
        if hasattr(engine, "why") or (isinstance(engine, PlainEngine) and not is_total):
            return _by_pattern(settings, text, unit)  # no tables, or text is left out
    from ..engines.trace import BEGINNING  # a stream of one chunk

    tracer = definition.tracer(errors)
    ids, spans, _ = tracer.encode(settings.tail(), BEGINNING, text, True, unit, NO_LIMIT)
    return ids, spans


def _in_bytes(ids: IdArray, sizes: TokenSizes) -> Spans:
    """The spans of tokens that are all of the text, in order."""
    if sizes.table is not None:
        return token_spans(ids, sizes.table)
    spans = np.zeros((len(ids), 2), np.int64)
    ends = np.cumsum(sizes.of_all(ids), dtype=np.int64)
    spans[1:, 0], spans[:, 1] = ends[:-1], ends
    return spans


def _by_pattern(settings: Settings, text: str | bytes, unit: str) -> tuple[IdArray, Spans]:
    """With pre-tokens found in Python, which may leave text out."""
    definition = settings.definition
    matcher, errors, sizes = settings.matcher, settings.errors, definition.token_sizes
    settings.encode(text, COUNT)  # raises what `encode` does
    source = BEGIN.fed(text, True, errors)
    policy = "surrogateescape" if errors == "surrogateescape" else "strict"
    data = source.text.encode("utf-8", policy)
    rows: list[IdArray] = []
    spans: list[Spans] = []
    for start, end, token in matcher.split(data):
        assert token is not None  # refused tokens have raised
        if token >= 0:
            rows.append(np.array([token], np.uint32))
            spans.append(np.array([(start, end)], np.int64))
            continue
        characters = data[start:end].decode("utf-8", policy)
        place = np.concatenate([[0], np.cumsum([_size(one) for one in characters])])
        found = list(definition.pretoken_spans(characters))
        pretokens = place[np.array(found, np.int64).reshape(-1, 2)]
        for begin, stop in (start + pretokens).tolist():
            ids = np.array(definition.encoder.encode_pretoken(data[begin:stop]), np.uint32)
            ends = begin + np.cumsum(sizes.of_text(ids), dtype=np.int64)
            rows.append(ids)
            spans.append(np.column_stack([ends - sizes.of_text(ids), ends]))
    if not rows:
        return np.empty(0, np.uint32), np.empty((0, 2), np.int64)
    every = np.concatenate(spans)
    return np.concatenate(rows), source.in_unit(every, unit, errors)


def _size(character: str) -> int:
    """The bytes of a character; one that stands for a byte has one."""
    if "\udc80" <= character <= "\udcff":
        return 1
    return len(character.encode())
