"""Where each token of a whole text came from; streams are in `engines/trace.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import ARRAY, COUNT, bytes_of, has_surrogate, token_spans
from ..engines.plain import PlainEngine
from ..engines.protocol import NO_LIMIT
from ..engines.source_units import BEGIN, check_unit
from ..engines.template import NO_TEMPLATE

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import IdArray, Text
    from ..engines.token_sizes import TokenSizes
    from ..normalizers.compiled import Changed
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
        if isinstance(engine, PlainEngine) and is_total:
            ids = engine.encode(text, matcher, errors, ARRAY)
            if sizes.are_clear_of(ids):
                return ids, _contiguous(ids, sizes, text, unit, errors)
        if hasattr(engine, "changed") and is_total and sizes.are_clear:
            found = engine.changed(text, matcher, errors)
            if found is not None:
                return _changed(engine, found, settings, text, unit)
        if hasattr(engine, "why") or (isinstance(engine, PlainEngine) and not is_total):
            return _by_pattern(settings, text, unit)  # no tables, or text is left out
    from ..engines.trace import BEGINNING  # a stream of one chunk

    chain = engine.chain(matcher, errors)
    tail = chain.tail(NO_TEMPLATE)
    tracer = definition.tracer(chain, errors)
    ids, spans, _ = tracer.encode(tail, BEGINNING, text, True, unit, NO_LIMIT)
    return ids, spans


def _changed(
    engine: Any, changed: Changed, settings: Settings, text: str | bytes, unit: str
) -> tuple[IdArray, Spans]:
    """Of a text that a normalizer has changed, without tokens."""
    errors, sizes = settings.errors, settings.definition.token_sizes
    ids = engine.encode_changed(changed.text, errors)
    if not len(changed.rows) or (changed.rows[:, 1:] == 1).all():  # each byte stands for itself
        return ids, _contiguous(ids, sizes, text, unit, errors)
    from ..engines.alignment import AlignmentMap

    spans = _contiguous(ids, sizes, changed.text, "byte", errors)
    source = BEGIN.fed(text, True, errors)
    return ids, source.in_unit(AlignmentMap().fed([changed]).back(spans), unit, errors)


def _contiguous(
    ids: IdArray, sizes: TokenSizes, text: str | bytes, unit: str, errors: str
) -> Spans:
    """The spans of tokens that are all of the text, in order."""
    table = sizes.table
    if text.isascii() or (unit == "byte" and (isinstance(text, str) or errors != "replace")):
        if table is not None:
            return token_spans(ids, table, None, False)
        return _in_bytes(ids, sizes)
    if table is not None and _is_plain(text, errors):
        return token_spans(ids, table, None if unit == "byte" else text, unit == "utf16")
    spans = _in_bytes(ids, sizes)
    source = BEGIN.fed(text, True, errors)
    return source.in_unit(spans, unit, errors)


def _is_plain(text: str | bytes, errors: str) -> bool:
    """Whether the text is neither repaired nor has bytes that are not UTF-8."""
    if isinstance(text, str):
        return not has_surrogate(text, 0, len(text))
    try:
        if errors != "strict":  # or else the encoder has seen to it
            text.decode()
    except UnicodeError:
        return False
    return True


def _in_bytes(ids: IdArray, sizes: TokenSizes) -> Spans:
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
