"""The step that replaces a string, as `tokenizers.normalizers.Replace` does.

Occurrences are found from left to right and do not overlap.
"""

from __future__ import annotations

from .growth import Growth
from .step import Interest, Step

__all__ = ["Replace"]


class Replace(Step):
    """Each `old` becomes `new`. `old` must not be empty."""

    __slots__ = ("growth", "new", "old", "spec")

    def __init__(self, old: str, new: str) -> None:
        if not old:
            raise ValueError("the string that is replaced must not be empty")
        self.old, self.new = old, new
        self.spec = ("Replace", old, new)
        self.growth = Growth(replaced=(old, new))

    def interest(self) -> Interest:
        points = [(ord(char), ord(char)) for char in self.old]
        if len(points) == 1:
            return Interest(points)
        return Interest(holds=points[:-1], joins=points[1:])

    def apply(self, text: str, where: int) -> str:
        return text.replace(self.old, self.new)
