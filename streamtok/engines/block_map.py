"""The way back from a changed text to the text before, for positions in its UTF-8.

A normalizer says in *blocks* what its text stands for (`normalizers/step.py`). How it groups the
characters may depend on how the text was cut; the rules here do not:

- a character that did not change stands for itself, byte by byte; so do the characters that a
  changed block begins and ends with, on both sides;
- in a changed block with as many characters as before, each one stands for its own;
- what is left of a changed block stands for all that is left on the other side;
- text that was put in stands for what was left out before and behind it, often nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import utf8_size

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..normalizers import Normalizer

    Offsets = npt.NDArray[np.int64]

__all__ = ["TOKEN", "Block", "BlockMap", "marked", "pieces_of"]

_ASCII_OR_ONE = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]")
TOKEN = "token"
WHOLE = "whole"
Block = tuple[str, str, str]
"""(text, source, ""), or TOKEN: source is a token that was taken out; WHOLE: it is one whole."""


class BlockMap(NamedTuple):
    """The blocks from a certain place on. Immutable; places are bytes of UTF-8."""

    blocks: tuple[Block, ...] = ()
    now: int = 0  # where the first block's text begins
    source: int = 0  # where its source begins
    last: int = 0  # where the source of the text before it ends; no more than `source`
    now_end: int = 0
    source_end: int = 0

    def fed(self, blocks: list[Block], has_escapes: bool) -> BlockMap:
        """With blocks behind those that are known."""
        sizes = [(utf8_size(x, has_escapes), utf8_size(y, has_escapes)) for x, y, _ in blocks]
        return self._replace(
            blocks=self.blocks + tuple(blocks),
            now_end=self.now_end + sum(now for now, _ in sizes),
            source_end=self.source_end + sum(source for _, source in sizes),
        )

    def back(self, starts: Offsets, ends: Offsets, has_escapes: bool) -> tuple[Offsets, Offsets]:
        """What of the source the stretches starts:ends of the text stand for, in order."""
        now, sources, exact, lasts, last = self._segments(has_escapes)
        if not len(sources):
            here = np.full(len(starts), last)
            return here, here.copy()
        at = np.searchsorted(now[:-1], ends, "left") - 1
        into = sources[at, 0] + ends - now[at]
        stops = np.where(exact[at], into, sources[at, 1])
        # An empty one is behind what is out of the text before the next character.
        is_inside = (at >= 0) & (ends < now[at + 1]) & exact[at]
        places = np.where(is_inside, into, np.append(lasts, last)[at + 1])
        at = np.searchsorted(now[:-1], starts, "right") - 1
        begins = sources[at, 0] + np.where(exact[at], starts - now[at], 0)
        is_empty = starts == ends
        return np.where(is_empty, places, begins), np.where(is_empty, places, stops)

    def forget(self, before: int, has_escapes: bool) -> BlockMap:
        """Without the characters whose text ends before byte `before`, or there."""
        blocks = list(self.blocks)
        now, source, last = self.now, self.source, self.last
        while blocks:
            text, origin, kind = block = blocks[0]
            size, source_size = utf8_size(text, has_escapes), utf8_size(origin, has_escapes)
            if now + size > before:
                if len(text) != len(origin) or now == before or kind:
                    break
                n = _n_within(text, before - now, has_escapes)
                if not n:
                    break
                blocks[0] = text[n:], origin[n:], kind
                text, origin = text[:n], origin[:n]
                block = text, origin, kind
                size, source_size = utf8_size(text, has_escapes), utf8_size(origin, has_escapes)
            else:
                blocks.pop(0)
            last = BlockMap((block,), now, source, last)._segments(has_escapes)[4]
            now += size
            source += source_size
            if now >= before and blocks and blocks[0][0]:
                break
        return self._replace(blocks=tuple(blocks), now=now, source=source, last=last)

    def _segments(
        self, has_escapes: bool
    ) -> tuple[Offsets, npt.NDArray[np.int64], npt.NDArray[np.bool_], Offsets, int]:
        """(where each piece of text begins, and the end; where its source begins and ends; whether
        it stands for it byte by byte; `last` before it; `last` behind all of them).
        """
        parts = []  # rows (size, size of the source, exact or TOKEN)
        for text, source, kind in self.blocks:
            if kind:
                sizes = utf8_size(text, has_escapes), utf8_size(source, has_escapes)
                parts.append(np.array([(*sizes, 2 if kind == TOKEN else 0)], np.int64))
            else:
                parts += _pieces(text, source, has_escapes)
        rows = np.concatenate(parts) if parts else np.empty((0, 3), np.int64)
        now = self.now + np.concatenate([[0], np.cumsum(rows[:, 0])])
        ends = self.source + np.cumsum(rows[:, 1])
        counts = ((rows[:, 0] > 0) & (rows[:, 1] > 0)) | (rows[:, 2] == 2)
        sources = np.column_stack([ends - rows[:, 1], ends])
        # For text that was put in: where the source of what is before it ends.
        lasts = np.maximum.accumulate(np.concatenate([[self.last], np.where(counts, ends, 0)]))
        put_in = rows[:, 1] == 0
        sources[put_in, 0] = lasts[:-1][put_in]
        has_text = rows[:, 0] > 0
        starts = np.concatenate([now[:-1][has_text], now[-1:]])
        exact = rows[has_text, 2] == 1
        return starts, sources[has_text], exact, lasts[:-1][has_text], int(lasts[-1])

    def to_json(self) -> list[Any]:
        """What `from_json` takes."""
        return list(self)

    @classmethod
    def from_json(cls, value: Any, has_escapes: bool) -> BlockMap:
        """One that was saved as JSON. Raises ValueError and TypeError if it is none."""
        blocks, now, source, last, now_end, source_end = value
        numbers = (now, source, last, now_end, source_end)
        if any(type(number) is not int or number < 0 for number in numbers) or last > source:
            raise ValueError("expected places in a text")
        known: list[Block] = []
        for text, origin, kind in blocks:
            if type(text) is not str or type(origin) is not str or kind not in ("", TOKEN, WHOLE):
                raise ValueError("expected blocks")
            known.append((text, origin, kind))
        self = cls((), now, source, last, now, source).fed(known, has_escapes)
        if self[4:] != (now_end, source_end):
            raise ValueError("expected blocks of another size")
        return self


def pieces_of(text: str, normalizers: Iterable[Normalizer | None]) -> list[str]:
    """The pieces in which a text must go to normalizers, so that any cut gives the same blocks."""
    how = max((_how(normalizer) for normalizer in normalizers if normalizer), default=0)
    if how == 2:
        return list(text)
    return [text] if how == 0 or text.isascii() else _ASCII_OR_ONE.findall(text)


def _how(normalizer: Normalizer) -> int:
    """What is safe: 0: any piece, 1: ASCII, and other characters one by one, 2: one by one."""
    names = [spec[0] for spec in normalizer.spec]
    if len(names) > 1:
        return 2
    return int(names[0] in ("NFC", "NFD", "NFKC", "NFKD"))


def marked(blocks: list[tuple[str, str]]) -> list[Block]:
    """The blocks of one piece, as `BlockMap` has them."""
    found: list[Block] = []
    for text, source in blocks:
        if found and source and not text and not found[-1][1] and not found[-1][2]:
            found[-1] = found[-1][0], source, WHOLE  # see `whole_block`
        elif text or source:
            found.append((text, source, ""))
    return found


def _pieces(text: str, source: str, has_escapes: bool) -> list[npt.NDArray[np.int64]]:
    if text is source or text == source:
        size = utf8_size(text, has_escapes)
        return [np.array([(size, size, 1)], np.int64)]
    if len(text) == len(source):
        now, before = _points(text), _points(source)
        is_same = (now == before).astype(np.int64)
        sizes = [_sizes(now, has_escapes), _sizes(before, has_escapes)]
        return [np.column_stack([*sizes, is_same])]
    begin = _n_common(text, source)
    text, source, common = text[begin:], source[begin:], text[:begin]
    end = _n_common(text[::-1], source[::-1])
    cut = len(text) - end
    sizes_now = [utf8_size(part, has_escapes) for part in (common, text[:cut], text[cut:])]
    middle = utf8_size(source[: len(source) - end], has_escapes)
    rows = [(sizes_now[0], sizes_now[0], 1), (sizes_now[1], middle, 0)]
    return [np.array([*rows, (sizes_now[2], sizes_now[2], 1)], np.int64)]


def _n_common(text: str, source: str) -> int:
    """How many of the first characters are the same."""
    pairs = enumerate(zip(text, source, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(text), len(source)))


def _points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _sizes(points: npt.NDArray[np.uint32], has_escapes: bool) -> Offsets:
    sizes = 1 + (points >= 0x80) + (points >= 0x800).astype(np.int64) + (points >= 0x10000)
    if has_escapes:
        sizes[(points >= 0xDC80) & (points < 0xDD00)] = 1
    return sizes


def _n_within(text: str, size: int, has_escapes: bool) -> int:
    """How many of the first characters end within `size` bytes."""
    if text.isascii():
        return size
    return int(np.searchsorted(np.cumsum(_sizes(_points(text), has_escapes)), size, "right"))
