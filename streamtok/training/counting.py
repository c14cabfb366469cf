"""How often each pre-token of a text occurs: chunks, documents, threads, memory.

`Counting` decides what is counted where; the core counts. Large texts are cut where the pattern
makes both sides independent of each other, and each thread counts its part into a table of its own.
A table is added to the total in one step, together with the number of its bytes. So `bytes_in` says
what is counted, whatever interrupts a call.

The public class is in `trainer.py`; the repair of text that is not UTF-8 in `replacement.py`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import Scanner
from .._core.train import PretokenCounter, text_size
from ..errors import MemoryLimitExceeded
from ..patterns.pattern import Pattern
from .replacement import check_held, held_bytes, repair

if TYPE_CHECKING:
    from .._types import Text

__all__ = ["BLOCK", "Counting"]

BLOCK = 1 << 25  # bytes that are counted between two checks for signals
LARGE = 1 << 20  # bytes from which threads are worth their start
_SORT_SIZE = 1 << 16  # pre-tokens that are put in order at a time


class Counting:
    """Counts of the pre-tokens in a sequence of texts. The caller allows one call at a time."""

    def __init__(self, pattern: Pattern, errors: str, num_threads: int, prune_singletons: bool):
        policy = "surrogateescape" if errors == "surrogateescape" else "strict"
        scanner, cut_pairs = _tables(pattern)
        self.counter = PretokenCounter(scanner, cut_pairs, policy, 0)
        self.errors = errors
        self.num_threads = num_threads
        self.prune_singletons = prune_singletons
        self.pruned_pieces = 0
        self.pruned_bytes = 0
        self.held = b""  # with "replace": what the next chunk decides, see `replacement.py`

    def update(self, chunk: Text, final: bool) -> None:
        """Count the pre-tokens that `chunk` completes; see Trainer.update."""
        if self.errors != "replace":
            self._count(chunk, final)
            return
        before = self.counter.bytes_in
        text, held = repair(self.held, chunk, final, before)
        try:
            self._count(text, final)
        except BaseException:
            if self.counter.bytes_in > before:  # the call stopped inside `text`, after `held`
                self.held = b""
            raise
        self.held = held

    def update_documents(self, texts: Iterable[Text]) -> None:
        """Count independent texts; nothing may be pending.

        The texts before the one that raises are counted.
        """
        batch: list[Text] = []
        size = 0
        try:
            for text in texts:
                if not isinstance(text, (str, bytes)):
                    text = _copied(text)  # its owner may reuse the buffer for the next text
                if len(text) >= LARGE:
                    batch, done, size = [], batch, 0
                    self._count_documents(done)
                    self.update(text, True)
                    continue
                batch.append(text)
                size += len(text)
                if size >= BLOCK // 2:
                    batch, done, size = [], batch, 0
                    self._count_documents(done)
        finally:
            self._count_documents(batch)

    def merge(self, other: Counting) -> None:
        """End the text and add the counts of `other`, as if its text came next. Atomic."""
        more = held_bytes(self.held)
        rest = self.counter.ended(more)
        while True:
            # Everything that may need memory, the sums too, comes before anything is added.
            pruned_pieces = self.pruned_pieces + other.pruned_pieces
            pruned_bytes = self.pruned_bytes + other.pruned_bytes
            if self.counter.merge(other.counter, rest, len(more)):
                break
            self._make_room()
        self.held = b""
        self.pruned_pieces = pruned_pieces
        self.pruned_bytes = pruned_bytes

    @property
    def pending(self) -> int:
        """Bytes that are not counted yet, with the held ones."""
        return self.counter.pending + len(self.held)

    def pretokens(self, in_order: bool) -> tuple[Any, Any, Any, Any]:
        """(data, sizes, counts, firsts) of the different pre-tokens.

        data: uint8 [bytes], end to end. sizes: uint32 [n]. counts: uint64 [n]. firsts: uint64 [n],
        the offset in the text of the first occurrence. in_order: sort by `firsts`.
        """
        data, sizes, counts, firsts = self.counter.table.export()
        if not in_order:
            return data, sizes, counts, firsts
        order = np.argsort(firsts, kind="stable")
        begins = (np.cumsum(sizes, dtype=np.int64) - sizes)[order]
        sizes = sizes[order]
        parts = [data[:0]]
        for i in range(0, len(order), _SORT_SIZE):
            lengths = sizes[i : i + _SORT_SIZE]
            # The source of each byte: the start of its pre-token, and its place in that.
            shifts = begins[i : i + _SORT_SIZE] - (np.cumsum(lengths, dtype=np.int64) - lengths)
            moved = np.repeat(shifts, lengths)
            parts.append(data[moved + np.arange(len(moved))])
        return np.concatenate(parts), sizes, counts[order], firsts[order]

    def getstate(self) -> tuple[Any, Any, tuple[int, int]]:
        """((bytes taken in, pending bytes, held bytes), arrays, (pre-tokens, bytes) pruned)."""
        place = *self.counter.getstate(), self.held
        return place, self.pretokens(in_order=False), (self.pruned_pieces, self.pruned_bytes)

    def setstate(self, state: Any) -> None:
        """Take the state from `getstate`. `self` must be fresh.

        Raises ValueError or TypeError for a damaged state, and MemoryLimitExceeded. Do not use
        `self` after that.
        """
        (bytes_in, pending, held), arrays, (pruned_pieces, pruned_bytes) = state
        arrays = [np.array(array) for array in arrays]
        check_held(held, self.errors)
        if min(pruned_pieces, pruned_bytes - pruned_pieces) < 0:
            raise ValueError(f"{pruned_bytes} bytes of {pruned_pieces} pruned pre-tokens")
        _, sizes, counts, firsts = arrays
        _check_counts(sizes, counts, firsts, bytes_in, bytes_in - len(pending) - pruned_bytes)
        limit = self.counter.table.limit
        if not self.counter.table.load(*arrays):
            raise MemoryLimitExceeded(
                f"the saved counts need more memory than memory_limit, {limit} bytes", limit=limit
            )
        self.counter.setstate(bytes_in, pending)
        self.held = held
        self.pruned_pieces, self.pruned_bytes = int(pruned_pieces), int(pruned_bytes)

    def _count(self, chunk: Text, final: bool) -> None:
        counter = self.counter
        stop, size = counter.part_end(chunk, 0, BLOCK)
        if stop < size:  # an invalid block must not leave earlier ones counted
            counter.check_bytes(chunk, 0, size, final, counter.bytes_in)
        start = 0
        while True:
            self._count_block(chunk, start, stop, final and stop == size)
            if stop == size:
                return
            start = stop
            stop, _ = counter.part_end(chunk, start, BLOCK)

    def _count_block(self, chunk: Text, start: int, stop: int, final: bool) -> None:
        cuts: list[int] = []
        if self.num_threads > 1 and stop - start >= LARGE:
            cuts = self.counter.cuts(chunk, start, stop, self.num_threads)
        if len(cuts) < 3 or not self._count_parts(chunk, start, stop, final, cuts):
            self._feed(chunk, start, stop, final)

    def _count_parts(
        self, chunk: Text, start: int, stop: int, final: bool, cuts: list[int]
    ) -> bool:
        """Count the parts between the cuts in parallel. False at the limit: nothing is done."""
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
        if self._count_together(batch):
            return
        for text in batch:  # one by one, up to the text that raises
            self.update(text, True)

    def _count_together(self, batch: list[Text]) -> bool:
        """Count texts in parallel. False at the limit or for an invalid text: nothing is done."""
        try:
            if self.errors == "replace":
                batch = [repair(b"", text, True, 0)[0] for text in batch]
            starts = np.cumsum([0, *map(text_size, batch)])
        except UnicodeError:
            return False
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
            try:
                if not all([task.result() for task in tasks]):
                    return False
            except UnicodeError:
                return False
        for worker, (a, b) in zip(workers, parts, strict=True):
            self._absorb(worker, 0, int(starts[b] - starts[a]))
        return True

    def _feed(self, chunk: Text, start: int, stop: int | None, final: bool) -> None:
        counter = self.counter
        before = counter.bytes_in
        while not counter.feed(chunk, start, stop, final):
            start += counter.bytes_in - before
            before = counter.bytes_in
            self._make_room()

    def _absorb(self, other: PretokenCounter, shift: int, size: int) -> None:
        while not self.counter.absorb(other, shift, size):
            self._make_room()

    def _make_room(self) -> None:
        """Prune if that is allowed and frees an eighth of the table; otherwise raise."""
        table = self.counter.table
        if self.prune_singletons:
            before = len(table)
            count, size = table.prune()
            self.pruned_pieces += count
            self.pruned_bytes += size
            if count and count * 8 >= before:
                return
        raise MemoryLimitExceeded(
            f"counting needs more memory than memory_limit, {table.limit} bytes: there are "
            f"{len(table)} different pre-tokens in the first {self.counter.bytes_in} bytes, "
            f"{self.counter.pending} of them in a pre-token that has not ended. Nothing is lost: "
            "raise the limit and continue from that byte, save the counts, merge them into another "
            "trainer, or train on them",
            bytes_in=self.counter.bytes_in,
            limit=table.limit,
        )


@functools.lru_cache(maxsize=16)
def _tables(pattern: Pattern) -> tuple[Scanner, Any]:
    """The scanner that finds pre-tokens, and bool [128, 128]: where ASCII text may be cut."""
    ascii_classes = [pattern.class_of(point) for point in range(128)]
    scanner = Scanner(pattern, pattern.substitutes)
    return scanner, pattern.clean_cut_pairs[np.ix_(ascii_classes, ascii_classes)]


def _copied(text: Text) -> bytes:
    try:
        return bytes(memoryview(text))  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"text must be str or bytes-like, not {type(text).__name__}") from None


def _check_counts(sizes: Any, counts: Any, firsts: Any, bytes_in: int, counted: int) -> None:
    """Raise ValueError for counts that `bytes_in` bytes of text cannot have.

    counted: how many of the bytes are neither pending nor pruned. A pattern may leave some out.
    """
    if not 0 <= counted <= bytes_in < 1 << 63:
        raise ValueError(f"{counted} of {bytes_in} bytes were counted")
    if not len(sizes):
        return
    if len(sizes) != len(counts) or len(sizes) != len(firsts):
        raise ValueError("sizes, counts and firsts must have the same length")
    if int(counts.max()) > bytes_in or int(firsts.max()) >= bytes_in:
        raise ValueError(f"a pre-token has a count or an offset past the {bytes_in} bytes of text")
    # In floats first, because they cannot overflow.
    total = float(np.dot(sizes.astype(np.float64), counts.astype(np.float64)))
    if total > 1.001 * counted + 1 or int(np.dot(sizes.astype(np.uint64), counts)) > counted:
        raise ValueError(f"the pre-tokens have more bytes than the {counted} that were counted")
