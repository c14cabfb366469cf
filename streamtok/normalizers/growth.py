"""An upper bound on how much steps can lengthen a text, computed from the steps alone.

Three steps that each replace `l` by 60 000 `l` turn one character into 10^14. So a normalizer whose
bound is above `MOST_GROWTH` is refused before it sees a text. The bound also holds between two
steps, so memory is bounded by the size of the input.

Each character has a *weight*: the maximum number of bytes that it becomes. Weights are computed
from the last step to the first. Before a step that replaces `old` by `new`, the characters of `old`
together weigh at least as much as `new` weighs after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["MOST_GROWTH", "Growth", "growth_of", "n_bytes", "ratio"]

MOST_GROWTH = 1024  # bytes of normalized text for a byte of text; known files have 200 at most
_MOST = 1e30  # weights are capped at this far larger value, so that products stay finite


class Growth(NamedTuple):
    """How much one step can add to a text."""

    # The maximum number of bytes that one changed byte becomes. None: apart from the other two
    # fields, the step only removes text.
    factor: float | None = None
    replaced: tuple[str, str] | None = None  # each occurrence of the first becomes the second
    put: str = ""  # prepended to a non-empty segment


def n_bytes(text: str) -> int:
    """The size of a text in UTF-8, with one byte for half a surrogate pair."""
    return len(text.encode("utf-8", "replace"))


def ratio(pairs: Iterable[tuple[str, str]]) -> float:
    """The growth of a step that replaces the first text of each pair by the second."""
    sizes: dict[str, int] = {}  # many pairs may share one long replacement
    most = 1.0
    for old, new in pairs:
        size = sizes.get(new)
        if size is None:
            size = sizes[new] = n_bytes(new)
        most = max(most, size / n_bytes(old))
    return most


def growth_of(steps: Sequence[Growth]) -> float:
    """The maximum number of bytes that one byte of a segment becomes at any of the steps."""
    bound = _Bound()
    for step in reversed(steps):
        bound.add_before(step)
    bound.level()
    return bound.each + bound.once


class _Bound:
    """The weights before the last few steps."""

    def __init__(self) -> None:
        self.each = 1.0  # for each byte of a character
        self.of: dict[str, float] = {}  # of characters with another weight
        self.once = 0.0  # for text prepended to a segment, which has a byte or more

    def weigh(self, text: str) -> float:
        known = {char: text.count(char) for char in self.of if char in text}
        weight = self.each * n_bytes(text)
        for char, times in known.items():
            weight += times * (self.of[char] - self.each * n_bytes(char))
        return min(weight, _MOST)

    def add_before(self, step: Growth) -> None:
        """Turn the weights after `step` into those before it."""
        self.once = min(self.once + self.weigh(step.put), _MOST)
        if step.factor is not None:
            self.level()
            self.each = min(self.each * max(step.factor, 1.0), _MOST)
        if step.replaced is None:
            return
        old, new = step.replaced
        if len(old) == 1:  # none is left, so its weight after the step does not matter
            self.of[old] = max(float(n_bytes(old)), self.weigh(new))
            return
        missing = self.weigh(new) - self.weigh(old)
        if missing > 0:
            # Any character of `old` may get the missing weight. Prefer one that is not in `new`,
            # or else `new` gets heavier, too. Then prefer one that few other strings contain: one
            # that is heavy already, or not alphanumeric.
            char = max(
                old,
                key=lambda one: (one not in new, self.of.get(one, 0.0), not one.isalnum(), one),
            )
            self.of[char] = min(self.weigh(char) + missing / old.count(char), _MOST)

    def level(self) -> None:
        """Give all characters the same weight per byte, the largest of any."""
        heaviest = max((weight / n_bytes(char) for char, weight in self.of.items()), default=0.0)
        self.each = max(self.each, heaviest)
        self.of = {}
