"""The tree of a pre-tokenization pattern: what the parser makes and the compiler takes.

A character set is already folded and negated when it enters the tree, so that no flag survives
parsing. Groups leave no trace: which part of a pre-token matched what is of no use here.
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
    """One character out of a set."""

    charset: CharSet


@dataclass(frozen=True)
class Condition:
    """No character, but the next one is in `charset`, or is missing if `at_end`."""

    charset: CharSet
    at_end: bool


@dataclass(frozen=True)
class Sequence:
    """One part after the other; no parts match the empty string."""

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
    """The first match of `item` and no other: `(?>...)`, and what possessive quantifiers mean."""

    item: Node
    text: str  # as written, for messages
    position: int


Node = SetNode | Condition | Sequence | Choice | Repeat | Atomic


def can_be_empty(node: Node) -> bool:
    """Whether `node` can match without taking a character."""
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
