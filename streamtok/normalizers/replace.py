"""The step that replaces a string, as `tokenizers.normalizers.Replace` does.

Occurrences are found from left to right and do not overlap. At the end of a chunk, what may be the
beginning of an occurrence waits (Knuth, Morris and Pratt, 1977): its length is the state.
"""

from __future__ import annotations

from typing import Any

from .growth import Growth
from .step import Blocks, Interest, whole_block

__all__ = ["Replace"]


class Replace:
    """Each `old` becomes `new`. `old` must not be empty."""

    __slots__ = ("_borders", "_is_char", "_occurrence", "growth", "new", "old", "spec")

    def __init__(self, old: str, new: str) -> None:
        if not old:
            raise ValueError("the string that is replaced must not be empty")
        self.old, self.new = old, new
        self.spec = ("Replace", old, new)
        self.growth = Growth(replaced=(old, new))
        self._is_char = len(old) == len(new) == 1
        self._occurrence = whole_block(new, old)
        self._borders = _borders(old)

    def interest(self) -> Interest:
        points = [(ord(char), ord(char)) for char in self.old]
        if len(points) == 1:
            return Interest(points)
        return Interest(holds=points[:-1], joins=points[1:])

    def begin(self, is_first: bool) -> int:
        return 0

    def feed(self, state: int, text: str, final: bool) -> tuple[int, Blocks]:
        if self._is_char:
            return 0, [(text.replace(self.old, self.new), text)] if text else []
        if state and len(text) < len(self.old):
            return self._feed_short(state, text, final)
        text = self.old[:state] + text
        *parts, last = text.split(self.old)
        blocks: Blocks = []
        for part in parts:
            if part:
                blocks.append((part, part))
            blocks += self._occurrence
        wait = (
            0 if final else self._begun(0, last[1 - len(self.old) :] if len(self.old) > 1 else "")
        )
        last = last[: len(last) - wait]
        if last:
            blocks.append((last, last))
        return wait, blocks

    def held(self, state: int) -> str:
        return self.old[:state]

    def check_state(self, value: Any) -> int:
        if type(value) is not int or not 0 <= value < len(self.old):
            raise ValueError(f"expected a number from 0 to {len(self.old) - 1} of characters held")
        return value

    def _begun(self, state: int, text: str) -> int:
        """The length of the longest beginning of `old` that ends `old[:state] + text`, if no
        occurrence is in it.
        """
        for char in text:
            while state and self.old[state] != char:
                state = self._borders[state]
            state += self.old[state] == char
        return state

    def _feed_short(self, held: int, text: str, final: bool) -> tuple[int, Blocks]:
        """`feed`, in time proportional to `text` and to what comes out, however much waits."""
        state = held
        blocks: Blocks = []
        done = -held  # the offset in `text` up to which all is in `blocks`

        def copy(end: int) -> None:
            part = self.old[held + done : held + min(end, 0)] + text[max(done, 0) : max(end, 0)]
            if part:
                blocks.append((part, part))

        for i, char in enumerate(text, 1):
            state = self._begun(state, char)
            if state == len(self.old):
                copy(i - state)
                blocks.extend(self._occurrence)
                done, state = i, 0
        if final:
            state = 0
        copy(len(text) - state)
        return state, blocks


def _borders(text: str) -> list[int]:
    """For each length, that of the longest beginning of text[:length] that also ends it."""
    borders = [0] * len(text)
    border = 0
    for length in range(2, len(text)):
        while border and text[border] != text[length - 1]:
            border = borders[border]
        border += text[border] == text[length - 1]
        borders[length] = border
    return borders
