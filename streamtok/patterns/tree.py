"""The tree of a pre-tokenization pattern: the parser's output and the compiler's input.

Character sets are folded and negated before they enter the tree, so no flag survives parsing.
Capture groups are not kept: nothing here needs to know which part of a pattern matched.
"""

from __future__ import annotations

from dataclasses import dataclass

from .unicode_classes import CharSet

__all__ = [
    "Atomic",
    "Choice",
    "Condition",
    "Node",
    "Repeat",
    "Sequence",
    "SetNode",
    "can_be_empty",
]


@dataclass(frozen=True)
class SetNode:
    """One character of a set."""

    charset: CharSet


@dataclass(frozen=True)
class Condition:
    """An empty match before a character of `charset` or, if `at_end`, at the end of input."""

    charset: CharSet
    at_end: bool


@dataclass(frozen=True)
class Sequence:
    """The parts in order; a sequence without parts matches the empty string."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """The first option that leads to a match."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """`item` from `low` to `high` times (None: no limit), as many as possible unless `lazy`."""

    item: Node
    low: int
    high: int | None
    lazy: bool


@dataclass(frozen=True)
class Atomic:
    """Only the first match of `item`: `(?>...)`, and possessive quantifiers."""

    item: Node
    text: str  # as written, for messages
    position: int


Node = SetNode | Condition | Sequence | Choice | Repeat | Atomic


def can_be_empty(node: Node) -> bool:
    """Whether `node` can match without consuming a character."""
    match node:
        case SetNode():
            return False
        case Condition():
            return True
        case Sequence(parts):
            return all(map(can_be_empty, parts))
        case Choice(options):
            return any(map(can_be_empty, options))
        case Repeat(item, low):
            return low == 0 or can_be_empty(item)
        case Atomic(item):
            return can_be_empty(item)
