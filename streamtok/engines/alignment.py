"""The way back from a changed text to the text before, for positions in its UTF-8.

It is made of rows (`normalizers/compiled.py`): how many characters, and how many bytes each one has
now and had before. A byte that did not change is a row of one byte and one byte. Of all others:

- a character that changed, and what became something else as a whole, stands for all of it;
- what was left out goes with the character before it, and at the beginning of a stretch with the
  first one: a stretch is the text between two tokens;
- white space that a token takes goes with it;
- text that was put in goes with the text after it in its stretch.
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
_OF_STRETCH, _OF_TOKEN, _TAKEN = range(3)  # as in the core


class AlignmentMap(NamedTuple):
    """The rows from a certain place on. Immutable; places are bytes of UTF-8."""

    rows: Offsets = _NO_ROWS  # and the kind of each
    now: int = 0  # where the first row's text begins
    source: int = 0  # where its source begins
    last: int = 0  # where the source of the text before it ends; no more than `source`
    is_begun: bool = False  # that is of the same stretch

    def fed(self, blocks: Iterable[Block | bytes]) -> AlignmentMap:
        """With what comes after the rows that are known: blocks, or rows as the core gives them.

        A tuple is white space that a token takes, or text that is left.
        """
        rows = [self.rows]
        for block in blocks:
            if isinstance(block, int):
                rows.append(np.array([(1, block, block, _OF_TOKEN)]))
            elif isinstance(block, tuple) and not isinstance(block, Changed):
                size = utf8_size(block[1])
                rows.append(
                    np.array([(size, 1, 1, _OF_STRETCH) if block[0] else (1, 0, size, _TAKEN)])
                )
            else:
                known = block.rows if isinstance(block, Changed) else _rows_in(block)
                rows.append(np.full((len(known), 4), _OF_STRETCH, np.int64))
                rows[-1][:, :3] = known
        return self._replace(rows=np.concatenate(rows))

    @property
    def certain_to(self) -> int:
        """Up to where all that the text stands for is known: its last character may come to stand
        for more, and with it what is put in before it.
        """
        n, now, before, kind = self.rows.T
        begins = self.now + np.cumsum(n * now) - now
        of_text = np.flatnonzero(now)
        if not len(of_text):
            return self.now
        at = int(of_text[-1])
        put_in = (before == 0) & (now > 0)
        if put_in[at] or (n[at] == 1 and kind[at] == _OF_STRETCH):
            while at and put_in[at - 1]:
                at -= 1
            return int(begins[at] - (n[at] - 1) * now[at])
        return int(begins[at])

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


def _rows_in(data: bytes) -> Offsets:
    return np.frombuffer(data, np.int64).reshape(-1, 3)
