"""One text in up to four encodings side by side: where they agree, where they differ, totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.encode import text_bytes
from .result import Result
from .tokens import TextTokens, show_tokens
from .visible import visible

if TYPE_CHECKING:
    from ...encoding import Encoding

MOST_ENCODINGS = 4


@dataclass(frozen=True, slots=True)
class Segment(Result):
    """The text between two neighbouring boundaries that all encodings have."""

    start: int  # bytes
    stop: int
    shown: str
    counts: list[int]  # tokens in each encoding

    _also = ("is_same",)

    @property
    def is_same(self) -> bool:
        """Whether it is one token in every encoding, so that nothing in it differs."""
        return all(count == 1 for count in self.counts)


@dataclass(frozen=True, slots=True)
class Comparison(Result):
    """The tokens of each encoding, and the segments between the boundaries of all."""

    columns: list[TextTokens]
    segments: list[Segment]
    agreeing: int  # boundaries that all encodings have, including the end
    boundaries: int  # boundaries that at least one encoding has

    _also = ("differing",)

    @property
    def differing(self) -> int:
        """Boundaries that some encodings have and others do not."""
        return self.boundaries - self.agreeing


def compare_encodings(
    encodings: Sequence[Encoding], text: str | bytes, **settings: Any
) -> Comparison:
    """Comparison: a text in one to four encodings.

    settings: as for `show_tokens`. Boundaries are byte offsets, even inside characters.
    Raises ValueError for any other number of encodings, and as `show_tokens`.
    """
    if not 1 <= len(encodings) <= MOST_ENCODINGS:
        raise ValueError(f"expected 1 to {MOST_ENCODINGS} encodings, not {len(encodings)}")
    columns = [show_tokens(encoding, text, **settings) for encoding in encodings]
    ends = [np.unique([one.stop for one in column.tokens]) for column in columns]
    every, seen = np.unique(np.concatenate(ends), return_counts=True)
    common = every[seen == len(columns)].astype(np.int64)
    counts = [
        np.diff(np.searchsorted([one.stop for one in column.tokens], common, "right"), prepend=0)
        for column in columns
    ]
    if isinstance(text, str):
        text = text_bytes(text, settings.get("errors", "strict"))
    segments = []
    start = 0
    for stop, *each in zip(common.tolist(), *(row.tolist() for row in counts), strict=True):
        segments.append(Segment(start, stop, visible(bytes(text[start:stop])), each))
        start = stop
    return Comparison(columns, segments, len(common), len(every))
