"""How much longer steps can make a text: a bound that is computed from the steps alone.

Three steps that replace `l` by 60 000 `l` make 10^14 characters of one. So a normalizer has a
bound, and one whose bound is above `MOST_GROWTH` is refused before it meets a text. The bound holds
between two steps, too, so memory is bounded by the text that is given.

The bound is a *weight* for each character: the bytes that come of it at most. It is computed from
the last step to the first. Before a step that replaces `old` by `new`, the characters of `old`
together weigh at least what `new` weighs after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["MOST_GROWTH", "Growth", "growth_of", "n_bytes", "ratio"]

MOST_GROWTH = 1024  # bytes of normalized text for a byte of text; known files have 200 at most
_MOST = 1e30  # a weight that is far above; products of larger ones would not be numbers


class Growth(NamedTuple):
    """What one step can add to a text."""

    # One byte of what the step changes becomes so many at most; None: it changes nothing but what
    # the other two fields say, and what it leaves out.
    factor: float | None = None
    replaced: tuple[str, str] | None = None  # each occurrence of the first becomes the second
    put: str = ""  # at the beginning of a segment that is not empty


def n_bytes(text: str) -> int:
    """The size of a text in UTF-8, with one byte for half a surrogate pair."""
    return len(text.encode("utf-8", "replace"))


def ratio(pairs: Iterable[tuple[str, str]]) -> float:
    """The growth of a step that makes the second text of each pair of the first one."""
    sizes: dict[str, int] = {}  # many may have the same long one
    most = 1.0
    for old, new in pairs:
        size = sizes.get(new)
        if size is None:
            size = sizes[new] = n_bytes(new)
        most = max(most, size / n_bytes(old))
    return most


def growth_of(steps: Sequence[Growth]) -> float:
    """The bytes, at most, that a byte of a segment becomes anywhere in the steps."""
    bound = _Bound()
    for step in reversed(steps):
        bound.add_before(step)
    bound.level()
    return bound.each + bound.once


class _Bound:
    """The weights before some steps."""

    def __init__(self) -> None:
        self.each = 1.0  # for each byte of a character
        self.of: dict[str, float] = {}  # of characters that have another weight
        self.once = 0.0  # for text put at the beginning of a segment, which has a byte or more

    def weigh(self, text: str) -> float:
        known = {char: text.count(char) for char in self.of if char in text}
        weight = self.each * n_bytes(text)
        for char, times in known.items():
            weight += times * (self.of[char] - self.each * n_bytes(char))
        return min(weight, _MOST)

    def add_before(self, step: Growth) -> None:
        """The weights before `step`, from those after it."""
        self.once = min(self.once + self.weigh(step.put), _MOST)
        if step.factor is not None:
            self.level()
            self.each = min(self.each * max(step.factor, 1.0), _MOST)
        if step.replaced is None:
            return
        old, new = step.replaced
        if len(old) == 1:  # none is left, so what it would weigh later does not matter
            self.of[old] = max(float(n_bytes(old)), self.weigh(new))
            return
        missing = self.weigh(new) - self.weigh(old)
        if missing > 0:
            # Any of them can have what is missing. One that is not in `new` does not make `new`
            # heavier for the steps before; one that is heavy already or no letter is in few others.
            char = max(
                old,
                key=lambda one: (one not in new, self.of.get(one, 0.0), not one.isalnum(), one),
            )
            self.of[char] = min(self.weigh(char) + missing / old.count(char), _MOST)

    def level(self) -> None:
        """Give all characters the same weight for each byte, the largest that one has."""
        heaviest = max((weight / n_bytes(char) for char, weight in self.of.items()), default=0.0)
        self.each = max(self.each, heaviest)
        self.of = {}
