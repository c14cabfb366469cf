"""Where each token of a whole text came from; streams are in `engines/trace.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.encode import bytes_of
from ..engines.protocol import NO_LIMIT
from ..engines.source_units import check_unit
from ..engines.trace import BEGINNING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .._types import IdArray, Text
    from .text_settings import Settings

__all__ = ["encode_with_offsets"]


def encode_with_offsets(
    settings: Settings, text: Text, unit: str
) -> tuple[IdArray, npt.NDArray[np.int64]]:
    """See `Encoding.encode_with_offsets`."""
    check_unit(unit)
    # A plain copy, once: others may write to bytes, and a derived class may have other methods.
    text = str.__str__(text) if isinstance(text, str) else bytes_of(text)
    tracer = settings.definition.tracer(settings.errors, settings.template)
    tail = settings.tail(settings.template)  # a stream of one chunk
    ids, spans, _ = tracer.encode(tail, BEGINNING, text, True, unit, NO_LIMIT)
    return ids, spans
