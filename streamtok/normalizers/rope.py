"""Text that waits and grows, as a tuple of pieces.

Pieces are joined as the digits of a binary counter are carried: each is longer than twice the next,
so there are few, and adding to the text copies each character a few times at most.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Rope", "extend_rope", "rope_from_json"]

Rope: TypeAlias = "tuple[str, ...]"


def extend_rope(rope: Rope, text: str) -> Rope:
    """`rope` with `text` after it."""
    if not text:
        return rope
    pieces = list(rope)
    while pieces and len(pieces[-1]) <= 2 * len(text):
        text = pieces.pop() + text
    return (*pieces, text)


def rope_from_json(value: Any) -> Rope:
    """A rope that was saved as JSON, in as few pieces as it should have. Raises ValueError."""
    if not isinstance(value, (list, tuple)) or not all(type(piece) is str for piece in value):
        raise ValueError("expected a list of the strings that wait")
    return tuple(value)
