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
    from ..prompts import Prompt
    from .text_settings import Settings

__all__ = ["encode_with_offsets"]


def encode_with_offsets(
    settings: Settings, text: Text | Prompt, unit: str
) -> tuple[IdArray, npt.NDArray[np.int64]]:
    """See `Encoding.encode_with_offsets`."""
    check_unit(unit)
    settings, whole = settings.of(text)
    if settings.prompts is None:
        # A plain copy, once: others may write to bytes, and a derived class may have other methods.
        whole = str.__str__(whole) if isinstance(whole, str) else bytes_of(whole)
    tracer = settings.definition.tracer(settings.errors, settings.template)
    tail = settings.tail(settings.template)  # a stream of one chunk
    ids, spans, _ = tracer.encode(tail, BEGINNING, whole, True, unit, NO_LIMIT)
    return ids, spans
