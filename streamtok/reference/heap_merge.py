"""The merge loop with a linked list and a heap: slow like `bpe.py`, but with the core's steps.

The parts of a pre-token are nodes of a linked list. Each pair of neighbours that can merge is a
candidate in a heap, ordered by rank, then by position. A merge changes its left node and removes
the right one. Candidates with either node are then stale. They stay in the heap and are dropped
when popped: a node's version counts its changes, and a stale candidate has an old version. So a
merge costs O(log n), whereas `bpe.py` scans all pairs again.

An observer is called at each step. It may read the list and the heap, but must not change them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:  # importing `regex` takes longer than this module
    from .bpe import Ranks

__all__ = ["Candidate", "HeapMerge", "MergeEvent", "Node", "bpe_by_heap"]

T = TypeVar("T")
Merged = Callable[[T, T], "tuple[int, T] | None"]  # the rank of a pair and the merged part
Event = Literal["pushed", "stale", "merged"]


class Candidate(NamedTuple):
    """A pair in the heap. Candidates compare by rank, then by position."""

    rank: int
    left: int  # the index of the left node
    right: int
    left_version: int
    right_version: int


@dataclass(slots=True)
class Node(Generic[T]):
    """A part, with the indices of its neighbours, or -1 for none."""

    part: T
    before: int
    after: int
    version: int = 0
    is_gone: bool = False  # merged into its left neighbour


class MergeEvent(NamedTuple):
    """A step: a candidate was pushed into the heap, dropped because it was stale, or merged."""

    kind: Event
    candidate: Candidate


class HeapMerge(Generic[T]):
    """Merges one pre-token.

    >>> ranks = {b"a": 0, b"b": 1, b"ab": 2}
    >>> merge = HeapMerge([b"a", b"b", b"b"], lambda a, b: (ranks[a + b], a + b)
    ...                   if a + b in ranks else None)
    >>> merge.run()
    [b'ab', b'b']
    """

    def __init__(
        self,
        parts: Sequence[T],
        merged: Merged[T],
        observer: Callable[[HeapMerge[T], MergeEvent], None] | None = None,
    ) -> None:
        last = len(parts) - 1
        self.nodes = [
            Node(part, at - 1, at + 1 if at < last else -1) for at, part in enumerate(parts)
        ]
        self.heap: list[Candidate] = []
        self._merged = merged
        self._observer = observer

    def run(self) -> list[T]:
        """Merge until no pair can merge, and return the remaining parts. Call it only once."""
        for at in range(len(self.nodes) - 1):
            self._push(at)
        while self.heap:
            candidate = heapq.heappop(self.heap)
            if self.is_stale(candidate):
                self._tell("stale", candidate)
                continue
            self._merge(candidate)
        return self.parts()

    def parts(self) -> list[T]:
        """The parts as they are now."""
        return [node.part for node in self.nodes if not node.is_gone]

    def is_stale(self, candidate: Candidate) -> bool:
        """Whether a node of the candidate has changed since the candidate was pushed."""
        left, right = self.nodes[candidate.left], self.nodes[candidate.right]
        versions = left.version, right.version
        return versions != (candidate.left_version, candidate.right_version)

    def _merge(self, candidate: Candidate) -> None:
        left, right = self.nodes[candidate.left], self.nodes[candidate.right]
        found = self._merged(left.part, right.part)
        assert found is not None
        left.part = found[1]
        left.after = right.after
        if right.after >= 0:
            self.nodes[right.after].before = candidate.left
        left.version += 1
        right.version += 1
        right.is_gone = True
        self._tell("merged", candidate)
        if left.before >= 0:
            self._push(left.before)
        self._push(candidate.left)

    def _push(self, at: int) -> None:
        """Push a candidate for the node and its right neighbour, if they can merge."""
        left = self.nodes[at]
        if left.after < 0:
            return
        right = self.nodes[left.after]
        found = self._merged(left.part, right.part)
        if found is not None:
            candidate = Candidate(found[0], at, left.after, left.version, right.version)
            heapq.heappush(self.heap, candidate)
            self._tell("pushed", candidate)

    def _tell(self, kind: Event, candidate: Candidate) -> None:
        if self._observer is not None:
            self._observer(self, MergeEvent(kind, candidate))


def bpe_by_heap(ranks: Ranks, pretoken: bytes) -> list[int]:
    """The ids of a pre-token, found by merging alone; always equal to those of `bpe.bpe`.

    >>> bpe_by_heap({b"a": 0, b"b": 1, b"ab": 2}, b"abb")
    [2, 1]
    """

    def merged(left: bytes, right: bytes) -> tuple[int, bytes] | None:
        rank = ranks.get(left + right)
        return None if rank is None else (rank, left + right)

    parts = [bytes([byte]) for byte in pretoken]
    return [ranks[part] for part in HeapMerge(parts, merged).run()]
