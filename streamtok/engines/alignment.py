"""The way back from a changed text to the text before, for positions in its UTF-8.

It is made of rows (`normalizers/compiled.py`): how many characters, and how many bytes each one has
now and had before. A byte that did not change is a row of one byte and one byte. Of all others:

- a character that changed, and what became something else as a whole, stands for all of it;
- text that was put in stands for what was left out before and after it, often nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import utf8_size
from ..normalizers.compiled import Changed

if TYPE_CHECKING:
    import numpy.typing as npt

    from .offsets import Block

    Offsets = npt.NDArray[np.int64]

__all__ = ["AlignmentMap"]

_NO_ROWS = np.empty((0, 4), np.int64)


class AlignmentMap(NamedTuple):
    """The rows from a certain place on. Immutable; places are bytes of UTF-8."""

    rows: Offsets = _NO_ROWS  # and whether it is a token that was taken out
    now: int = 0  # where the first row's text begins
    source: int = 0  # where its source begins
    last: int = 0  # where the source of the text before it ends; no more than `source`

    def fed(self, blocks: Iterable[Block]) -> AlignmentMap:
        """With blocks after those that are known. A tuple is a token, or text that is left."""
        rows = [self.rows]
        for block in blocks:
            if isinstance(block, Changed):
                rows.append(np.zeros((len(block.rows), 4), np.int64))
                rows[-1][:, :3] = block.rows
            else:
                size = utf8_size(block[1], True)
                rows.append(np.array([(size, 1, 1, 0) if block[0] else (1, 0, size, 1)]))
        return self._replace(rows=np.concatenate(rows))

    def back(self, starts: Offsets, ends: Offsets) -> tuple[Offsets, Offsets]:
        """What of the source the stretches starts:ends of the text stand for, in order."""
        now, sources, exact, lasts, last = self._segments()
        if not len(sources):
            here = np.full(len(starts), last)
            return here, here.copy()
        at = np.searchsorted(now[:-1], ends, "left") - 1
        into = sources[at, 0] + ends - now[at]
        stops = np.where(exact[at], into, sources[at, 1])
        # An empty one is after the text removed before the next character.
        is_inside = (at >= 0) & (ends < now[at + 1]) & exact[at]
        places = np.where(is_inside, into, np.append(lasts, last)[at + 1])
        at = np.searchsorted(now[:-1], starts, "right") - 1
        begins = sources[at, 0] + np.where(exact[at], starts - now[at], 0)
        is_empty = starts == ends
        return np.where(is_empty, places, begins), np.where(is_empty, places, stops)

    def forget(self, before: int) -> AlignmentMap:
        """Without the characters whose text ends before byte `before`, or there."""
        reached = self.now + np.cumsum(self.rows[:, 0] * self.rows[:, 1])
        gone = int(np.searchsorted(reached, before, "right"))
        known, kept = self.rows[:gone], self.rows[gone:].copy()
        rest = before - (int(reached[gone - 1]) if gone else self.now)
        if len(kept) and rest > 0:
            known = np.concatenate([known, kept[:1]])
            known[-1, 0] = rest // kept[0, 1]
            kept[0, 0] -= known[-1, 0]
        now, source = (int((known[:, 0] * known[:, side]).sum()) for side in (1, 2))
        last = self._replace(rows=known)._segments()[4]
        return AlignmentMap(kept, self.now + now, self.source + source, last)

    @property
    def source_end(self) -> int:
        """Where the source of all rows ends."""
        return self.source + int((self.rows[:, 0] * self.rows[:, 2]).sum())

    def _segments(
        self,
    ) -> tuple[Offsets, Offsets, npt.NDArray[np.bool_], Offsets, int]:
        """(where each piece of text begins, and the end; where its source begins and ends; whether
        it stands for it byte by byte; `last` before it; `last` after all of them).
        """
        is_exact = (self.rows[:, 1] == 1) & (self.rows[:, 2] == 1)
        counts, *sizes, is_token = np.repeat(self.rows, np.where(is_exact, 1, self.rows[:, 0]), 0).T
        exact = (sizes[0] == 1) & (sizes[1] == 1)
        text, source = (np.where(exact, counts, size) for size in sizes)
        now = self.now + np.concatenate([[0], np.cumsum(text)])
        ends = self.source + np.cumsum(source)
        sources = np.column_stack([ends - source, ends])
        # For text that was put in: where the source of what is before it ends.
        stands = ((text > 0) & (source > 0)) | (is_token == 1)
        lasts = np.maximum.accumulate(np.concatenate([[self.last], np.where(stands, ends, 0)]))
        sources[source == 0, 0] = lasts[:-1][source == 0]
        has_text = text > 0
        starts = np.concatenate([now[:-1][has_text], now[-1:]])
        return starts, sources[has_text], exact[has_text], lasts[:-1][has_text], int(lasts[-1])

    def to_json(self) -> list[Any]:
        """What `from_json` takes."""
        return [self.rows.tolist(), *self[1:]]

    @classmethod
    def from_json(cls, value: Any) -> AlignmentMap:
        """One that was saved as JSON. Raises ValueError and TypeError if it is none."""
        known, now, source, last = value
        numbers = [now, source, last, *(number for row in known for number in row)]
        if any(type(number) is not int or not 0 <= number < 1 << 62 for number in numbers):
            raise ValueError("expected places in a text")
        if last > source or any(len(row) != 4 or not row[0] or row[3] > 1 for row in known):
            raise ValueError("expected rows of a number of characters and their sizes")
        return cls(np.array(known, np.int64).reshape(-1, 4), now, source, last)
