"""Texts in parts that threads prepare and count side by side, each part into a table of its own.

Text is cut where the pattern makes both sides independent of each other. Small text is one part.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._core.encode import SpecialMatcher
from .._core.train import PretokenCounter
from ..threads import map_in_threads

if TYPE_CHECKING:
    from .._core.encode import Cuts
    from .._types import Text

    Part = tuple[Text, int, int, bool]  # bytes [start, stop); whether the text ends there

_NO_SPECIAL = SpecialMatcher([], frozenset(), ())
LARGE = 1 << 20  # bytes from which threads are worth their start


class PartCounters:
    """Counters of parts for the counter of the whole, which is given to each call."""

    def __init__(self, num_threads: int, cuts: Cuts):
        """cuts: where text may be cut."""
        self.num_threads = num_threads
        self._cuts = cuts
        self._idle: list[PretokenCounter] = []

    def are_many(self, size: int) -> bool:
        """Whether a text of this size is cut."""
        return self.num_threads > 1 and size >= LARGE

    def of_bytes(self, chunk: Text, start: int, stop: int, final: bool) -> list[Part]:
        """Parts of bytes start:stop. final: the text ends at `stop`."""
        if isinstance(chunk, str) and self.are_many(stop - start):  # its cuts are in characters
            chunk = chunk.encode()
        bounds = self._bounds(chunk, start, stop)
        return [(chunk, a, b, final and b == stop) for a, b in itertools.pairwise(bounds)]

    def check(self, counter: PretokenCounter, chunk: Text, size: int, final: bool) -> None:
        """Raise what counting all `size` bytes of `chunk` as the next ones would raise."""
        here = counter.bytes_in
        parts = self.of_bytes(chunk, 0, size, final)
        map_in_threads(lambda part: counter.check_bytes(*part, here), parts, len(parts))

    def count(
        self, counter: PretokenCounter, first: Part, others: Sequence[Part]
    ) -> list[PretokenCounter]:
        """Count the first part with `counter`, and each other one with a counter of its own.

        All have been checked. Raises MemoryError; `counter` may then have a part of the first.
        """
        workers = [self._take(counter) for _ in others]
        calls = [(counter, *first, True)]
        calls += [(worker, *part, True) for worker, part in zip(workers, others, strict=True)]
        map_in_threads(lambda call: PretokenCounter.feed(*call), calls, len(calls))
        return workers

    def count_documents(self, counter: PretokenCounter, texts: list[Text]) -> list[PretokenCounter]:
        """Counters that have counted all texts, in their order. Raises UnicodeError."""
        ends = np.cumsum([len(text) for text in texts])
        total = int(ends[-1])
        n_parts = min(self.num_threads, total // (LARGE // 4) + 1)
        bounds = np.searchsorted(ends, np.arange(n_parts + 1) * total / n_parts).tolist()
        bounds[0], bounds[-1] = 0, len(texts)
        spans = [(a, b) for a, b in itertools.pairwise(bounds) if a < b]
        workers = [self._take(counter) for _ in spans]
        calls = [(worker, texts, *span) for worker, span in zip(workers, spans, strict=True)]
        map_in_threads(lambda call: PretokenCounter.count_documents(*call), calls, len(calls))
        return workers

    def give_back(self, worker: PretokenCounter) -> None:
        """Use its memory for later parts: to grow a table from nothing takes long."""
        self._idle.append(worker)

    def forget(self) -> None:
        """Free the memory that waits for later parts."""
        self._idle.clear()

    def _take(self, counter: PretokenCounter) -> PretokenCounter:
        if not self._idle:
            return counter.worker()
        worker = self._idle.pop()
        worker.restart()
        return worker

    def _bounds(self, text: Text, start: int, stop: int) -> list[int]:
        """Start, cuts for as many parts as there are threads, and stop."""
        bounds = [start]
        n_parts = self.num_threads if self.are_many(stop - start) else 1
        for part in range(1, n_parts):
            about = max(start + (stop - start) * part // n_parts, bounds[-1] + 1)
            place = self._cuts.find(text, _NO_SPECIAL, about, stop)
            if place < 0:
                break
            bounds.append(place)
        return [*bounds, stop]
