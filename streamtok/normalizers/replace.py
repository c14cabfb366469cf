"""The step that replaces a string, as `tokenizers.normalizers.Replace` does.

Occurrences are found from left to right and do not overlap. At the end of a chunk, what may be the
beginning of an occurrence waits (Knuth, Morris and Pratt, 1977).
"""

from __future__ import annotations

from .growth import Growth
from .step import Blocks, Interest, Step, whole_block

__all__ = ["Replace"]


class Replace(Step):
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

    def apply(self, text: str, where: int) -> str:
        return text.replace(self.old, self.new)

    def change(self, context: int, text: str, final: bool, seen: int) -> tuple[int, Blocks]:
        old = self.old
        if self._is_char:
            return 0, [(text.replace(old, self.new), text)] if text else []
        *parts, last = text.split(old)
        blocks: Blocks = []
        for part in parts:
            if part:
                blocks.append((part, part))
            blocks += self._occurrence
        wait = 0
        if not final and len(old) > 1:
            begun = 0 if parts or not text.startswith(old[:seen]) else seen
            new = last[begun:]
            wait = self._begun(begun if len(new) < len(old) else 0, new[1 - len(old) :])
        last = last[: len(last) - wait]
        if last:
            blocks.append((last, last))
        return 0, blocks

    def _begun(self, begun: int, text: str) -> int:
        """The length of the longest beginning of `old` that ends `old[:begun] + text`, if no
        occurrence is in it.
        """
        for char in text:
            while begun and self.old[begun] != char:
                begun = self._borders[begun]
            begun += self.old[begun] == char
        return begun


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
