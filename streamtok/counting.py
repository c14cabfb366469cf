"""How often each piece of a text occurs: chunks, documents, threads, memory.

`Counting` decides what is counted where; the counting itself is `_core/counter.pyx`. Large texts
are cut where the pattern makes both sides independent of each other, and each thread counts its
part into a table of its own. A table is added to the others in one step, together with the number
of bytes that it stands for: whatever interrupts that, `bytes_in` says what is counted.

Not here: what a user sees of it (`trainer.py`).
"""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from ._core.counter import PieceCounter, text_size
from ._core.scanner import Scanner
from .errors import MemoryLimitExceeded
from .pattern import Pattern

if TYPE_CHECKING:
    from .encoding import Text

__all__ = ["WINDOW", "Counting"]

WINDOW = 1 << 25  # bytes that are counted between two looks at the outside world
LARGE = 1 << 20  # bytes from which it pays to share a text between threads
_BLOCK = 1 << 16  # pieces that are put in order at a time


class Counting:
    """The pieces of one text after the other. One thread at a time: the caller sees to that."""

    def __init__(self, pattern: Pattern, errors: str, num_threads: int, prune_singletons: bool):
        ascii_classes = [pattern.class_of(point) for point in range(128)]
        pairs = pattern.clean_cut_pairs[np.ix_(ascii_classes, ascii_classes)]
        policy = "surrogateescape" if errors == "surrogateescape" else "strict"
        self.counter = PieceCounter(Scanner(pattern), pairs, policy, 0)
        self.errors = errors
        self.num_threads = num_threads
        self.prune_singletons = prune_singletons
        self.pruned_pieces = 0
        self.pruned_bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def update(self, chunk: Text, final: bool) -> None:
        """Count what `chunk` decides; see Trainer.update."""
        if self.errors == "replace":
            chunk = self._repaired(chunk, final)
        size = text_size(chunk)
        for start in range(0, size, WINDOW) or [0]:
            stop = min(start + WINDOW, size)
            self._count_window(chunk, start, stop, final and stop == size)

    def update_documents(self, texts: Iterable[Text]) -> None:
        """Count texts that stand for themselves; nothing may be pending."""
        batch: list[Text] = []
        size = 0
        for text in texts:
            if len(text) >= LARGE:
                self._count_documents(batch)
                batch, size = [], 0
                self.update(text, True)
                continue
            batch.append(text)
            size += len(text)
            if size >= WINDOW // 2:
                self._count_documents(batch)
                batch, size = [], 0
        self._count_documents(batch)

    def add(self, other: Counting) -> None:
        """Add what `other` counted, as if it came next; nothing may be pending, neither here."""
        self._absorb(other.counter, self.counter.bytes_in, other.counter.bytes_in)
        self.pruned_pieces += other.pruned_pieces
        self.pruned_bytes += other.pruned_bytes

    def pieces(self, in_order: bool) -> tuple[Any, Any, Any, Any]:
        """(uint8 [bytes], uint32 [n], uint64 [n], uint64 [n]): pieces in a row, their sizes,
        counts and first places; in the order of these if wanted, else in any."""
        data, sizes, counts, firsts = self.counter.table.export()
        if not in_order:
            return data, sizes, counts, firsts
        order = np.argsort(firsts, kind="stable")
        begins = (np.cumsum(sizes, dtype=np.int64) - sizes)[order]
        sizes = sizes[order]
        parts = [data[:0]]
        for i in range(0, len(order), _BLOCK):
            lengths = sizes[i : i + _BLOCK]
            # From where each byte comes: its piece's begin and its place in the piece.
            shifts = begins[i : i + _BLOCK] - (np.cumsum(lengths, dtype=np.int64) - lengths)
            moved = np.repeat(shifts, lengths)
            parts.append(data[moved + np.arange(len(moved))])
        return np.concatenate(parts), sizes, counts[order], firsts[order]

    def getstate(self) -> tuple[Any, Any, tuple[int, int]]:
        """(bytes taken in, pending ones, unfinished ones), arrays, (pieces, bytes) forgotten."""
        place = *self.counter.getstate(), self._decoder.getstate()[0]
        return place, self.pieces(in_order=False), (self.pruned_pieces, self.pruned_bytes)

    def setstate(self, state: Any) -> None:
        """Continue where `getstate` was called. ValueError, TypeError: the state is damaged."""
        (bytes_in, pending, unfinished), arrays, pruned = state
        limit = self.counter.table.limit
        if not self.counter.table.load(*(np.array(array) for array in arrays)):
            raise MemoryLimitExceeded(
                f"the saved counts need more than memory_limit, {limit} bytes", limit=limit
            )
        self.counter.setstate(bytes_in, pending)
        self._decoder.setstate((unfinished, 0))
        self.pruned_pieces, self.pruned_bytes = map(int, pruned)

    def _repaired(self, chunk: Text, final: bool) -> str:
        if not isinstance(chunk, str):
            return self._decoder.decode(bytes(chunk), final)
        waiting = self._decoder.getstate()[0]
        if waiting and chunk:
            raise UnicodeDecodeError(
                "utf-8", waiting, 0, len(waiting), "a str chunk follows an unfinished character"
            )
        text = chunk.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text + self._decoder.decode(b"", final)

    def _count_window(self, chunk: Text, start: int, stop: int, final: bool) -> None:
        cuts: list[int] = []
        if self.num_threads > 1 and stop - start >= LARGE:
            cuts = self.counter.cuts(chunk, start, stop, self.num_threads)
        if len(cuts) < 3 or not self._count_parts(chunk, start, stop, final, cuts):
            self._feed(chunk, start, stop, final)

    def _count_parts(
        self, chunk: Text, start: int, stop: int, final: bool, cuts: list[int]
    ) -> bool:
        """Count the parts between the cuts in parallel; False, and nothing done: no memory."""
        counter = self.counter
        base = counter.bytes_in - start
        workers = [counter.worker() for _ in cuts[1:]]
        with ThreadPoolExecutor(len(workers)) as pool:
            bounds = itertools.pairwise(cuts)
            tasks = [
                pool.submit(worker.count_part, chunk, a, b, base)
                for worker, (a, b) in zip(workers, bounds, strict=True)
            ]
            if not all([task.result() for task in tasks]):
                return False
        counter.check_bytes(chunk, cuts[-1], stop, final, base)
        self._feed(chunk, start, cuts[0], True)
        for worker, (a, b) in zip(workers, itertools.pairwise(cuts), strict=True):
            self._absorb(worker, 0, b - a)
        self._feed(chunk, cuts[-1], stop, final)
        return True

    def _count_documents(self, batch: list[Text]) -> None:
        if not batch:
            return
        if self.errors == "replace":
            batch = [self._repaired(text, True) for text in batch]
        starts = np.cumsum([0, *map(text_size, batch)])
        total = int(starts[-1])
        n_parts = min(self.num_threads, total // (LARGE // 4) + 1)
        bounds = np.searchsorted(starts, np.arange(n_parts + 1) * total / n_parts).tolist()
        bounds[0], bounds[-1] = 0, len(batch)
        parts = [(a, b) for a, b in itertools.pairwise(bounds) if a < b]
        workers = [self.counter.worker() for _ in parts]
        base = self.counter.bytes_in
        with ThreadPoolExecutor(len(workers)) as pool:
            tasks = [
                pool.submit(worker.count_documents, batch[a:b], base + int(starts[a]))
                for worker, (a, b) in zip(workers, parts, strict=True)
            ]
            fits = all([task.result() for task in tasks])
        if not fits:
            for text in batch:
                self._feed(text, 0, None, True)
            return
        for worker, (a, b) in zip(workers, parts, strict=True):
            self._absorb(worker, 0, int(starts[b] - starts[a]))

    def _feed(self, chunk: Text, start: int, stop: int | None, final: bool) -> None:
        counter = self.counter
        before = counter.bytes_in
        while not counter.feed(chunk, start, stop, final):
            start += counter.bytes_in - before
            before = counter.bytes_in
            self._make_room()

    def _absorb(self, other: PieceCounter, shift: int, size: int) -> None:
        while not self.counter.absorb(other, shift, size):
            self._make_room()

    def _make_room(self) -> None:
        """Prune if that is allowed and helps, else raise."""
        table = self.counter.table
        if self.prune_singletons:
            before = len(table)
            pieces, size = table.prune()
            self.pruned_pieces += pieces
            self.pruned_bytes += size
            if pieces and pieces * 8 >= before:
                return
        raise MemoryLimitExceeded(
            f"counting needs more than memory_limit, {table.limit} bytes: {len(table)} different "
            f"pieces in the first {self.counter.bytes_in} bytes, {self.counter.pending} of them in "
            "a piece that has not ended. All is kept: raise the limit and go on from that byte, "
            "save or merge the counts elsewhere, or train on what is there",
            bytes_in=self.counter.bytes_in,
            limit=table.limit,
        )
