"""The way back from a changed text to the text before, for positions in its UTF-8.

It is made of rows (`normalizers/compiled.py`): how many characters, and how many bytes each one has
now and had before. A byte that did not change is a row of one byte and one byte. Of all others:

- a character that changed, and what became something else as a whole, stands for all of it;
- text that was put in stands for what was left out before and after it, often nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._core.encode import places_before, rows_from, utf8_size
from ..normalizers.compiled import Changed

if TYPE_CHECKING:
    import numpy.typing as npt

    from .offsets import Block

    Offsets = npt.NDArray[np.int64]

__all__ = ["AlignmentMap"]

_NO_ROWS = np.empty((0, 4), np.int64)


class AlignmentMap(NamedTuple):
    """The rows from a certain place on. Immutable; places are bytes of UTF-8."""

    rows: Offsets = _NO_ROWS  # and whether it is left out as part of a token
    now: int = 0  # where the first row's text begins
    source: int = 0  # where its source begins
    last: int = 0  # where the source of the text before it ends; no more than `source`

    def fed(self, blocks: Iterable[Block | Offsets]) -> AlignmentMap:
        """With what comes after the rows that are known: blocks, or rows.

        A tuple is what a token takes with it, or text that is left.
        """
        rows = [self.rows]
        for block in blocks:
            if isinstance(block, tuple) and not isinstance(block, Changed):
                size = utf8_size(block[1], True)
                rows.append(np.array([(size, 1, 1, 0) if block[0] else (1, 0, size, 1)]))
            else:
                known = block.rows if isinstance(block, Changed) else block
                rows.append(np.zeros((len(known), 4), np.int64))
                rows[-1][:, :3] = known
        return self._replace(rows=np.concatenate(rows))

    def back(self, spans: Offsets) -> Offsets:
        """What of the source the stretches of the text stand for."""
        if (spans[1:] >= spans[:-1]).all():
            return places_before(*self, spans)
        # tokenizers puts unknown characters, fused or not, behind the bytes of those after them.
        begins, ends = spans.T
        filled = begins < ends
        order = np.lexsort((~filled, ends))
        found = np.empty_like(spans)
        found[order] = places_before(*self, np.column_stack([ends - filled, ends])[order])
        order = np.flatnonzero(filled)[np.argsort(begins[filled])]
        starts = np.column_stack([begins, begins + 1])[order]
        found[order, 0] = places_before(*self, starts)[:, 0]
        return found

    def forget(self, before: int) -> AlignmentMap:
        """Without the characters whose text ends before byte `before`, or there."""
        return AlignmentMap(*rows_from(*self, before))
