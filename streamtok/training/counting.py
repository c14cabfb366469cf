"""How often each pre-token of a text occurs: chunks, documents, threads, memory.

`Counting` decides what is counted where; the core counts. Large texts are cut where the pattern
makes both sides independent of each other, and each thread counts its part into a table of its own.
A table is added to the total in one step, together with the number of its bytes. So `bytes_in` says
what is counted, whatever interrupts a call.

At the memory limit, the table can go to the disk (`count_runs.py`), and counting begins with a new
one. Then the counts are the sum of the table and the runs.

The public class is in `trainer.py`; `engines/chunk_text.py` repairs text that is not UTF-8.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import has_surrogate, text_bytes, unfinished_size
from .._core.train import PretokenCounter
from ..engines.chunk_text import NO_BYTES_YET, BytesTaken, characters_of
from ..errors import MemoryLimitExceeded
from ..patterns.pattern import Pattern
from . import count_runs, part_counters
from .count_runs import Arrays, CountRun, CountSource, Shifted, SortedCounts, sum_counts
from .counter_inputs import copied, is_wide, scan_tables
from .part_counters import Characters, PartCounters, feed
from .saved_counts import check_counts

if TYPE_CHECKING:
    from .._types import Text
    from .part_counters import Part

__all__ = ["BLOCK", "Counting"]

BLOCK = 1 << 25  # bytes that are read, or documents that are counted, together
_PER_THREAD = 1 << 22  # bytes that a thread counts between two checks for signals
_SUM_MEMORY = 1 << 26  # bytes for the sum of runs where there is no limit


class Counting:
    """Counts of the pre-tokens in a sequence of texts. The caller allows one call at a time."""

    def __init__(
        self,
        pattern: Pattern,
        errors: str,
        num_threads: int,
        prune_singletons: bool,
        spill_folder: str | None,
    ):
        policy = "surrogateescape" if errors == "surrogateescape" else "strict"
        scanner, cuts = scan_tables(pattern)
        counter = PretokenCounter(scanner, policy, 0)
        # The table and the runs change together, in one assignment: signals come between any two.
        self._counted: tuple[PretokenCounter, tuple[CountRun, ...]] = (counter, ())
        self.errors = errors
        self.num_threads = num_threads
        self._parts = PartCounters(num_threads, cuts)
        self.prune_singletons = prune_singletons
        self.spill_folder = spill_folder
        self.pruned_pieces = 0
        self.pruned_bytes = 0
        self._known = -1, 0, 0  # after a spill: bytes in, pending, how many pre-tokens there are
        # With "replace": the bytes that the next chunk decides, by the bytes counted before them.
        # Where a call stops inside its text, these are none.
        self._taken: dict[int, BytesTaken] = {}

    @property
    def counter(self) -> PretokenCounter:
        """What counts now. A spill replaces it by a new one."""
        return self._counted[0]

    @property
    def runs(self) -> tuple[CountRun, ...]:
        """The counts on the disk."""
        return self._counted[1]

    @property
    def taken(self) -> BytesTaken:
        """With "replace": what the next chunk decides."""
        return self._taken.get(self.counter.bytes_in, NO_BYTES_YET)

    @property
    def held(self) -> bytes:
        """The bytes of it."""
        return self.taken.partial

    def update(self, chunk: Text, final: bool) -> None:
        """Count the pre-tokens that `chunk` completes; see Trainer.update."""
        if self.errors != "replace":
            self._count(chunk, final)
            return
        before, now = self.counter.bytes_in, self.taken
        # Errors say where the chunk begins in the text as it is counted.
        at_chunk = now._replace(bytes_in=before + len(now.partial), grown=0)
        taken, text = characters_of(at_chunk, chunk, final, "replace")
        if taken.reached > before:
            self._taken = {before: now, taken.reached: taken}
            self._count(text, final)
        else:
            self._count(text, final)
            self._taken = {before: taken}

    def update_documents(self, texts: Iterable[Text]) -> None:
        """Count independent texts; nothing may be pending.

        The texts before the one that raises are counted.
        """
        batch: list[Text] = []
        size = 0
        try:
            for text in texts:
                if not isinstance(text, (str, bytes)):
                    text = copied(text)  # its owner may reuse the buffer for the next text
                if len(text) >= part_counters.LARGE:
                    batch, done, size = [], batch, 0
                    self._count_documents(done)
                    self.update(text, True)
                    continue
                batch.append(text)
                size += len(text)
                if size >= self._block // 2:
                    batch, done, size = [], batch, 0
                    self._count_documents(done)
        finally:
            self._count_documents(batch)

    def end(self) -> None:
        """End the text, whatever the memory limit is. Raises UnicodeDecodeError."""
        self.counter.end(self._last_bytes())

    def _last_bytes(self) -> bytes:
        """The UTF-8 of what is held if the text ends there."""
        return characters_of(self.taken, b"", True, "replace")[1].encode()

    def merge(self, other: Counting) -> None:
        """End the text and add the counts of `other`, as if its text came next. Atomic."""
        more = self._last_bytes()
        rest = self.counter.ended(more)
        added = other.counter
        if other.runs and self.spill_folder is None:
            added = other.in_memory()
        while True:
            # Everything that may need memory, the sums too, comes before anything is added.
            pruned_pieces = self.pruned_pieces + other.pruned_pieces
            pruned_bytes = self.pruned_bytes + other.pruned_bytes
            if added is not other.counter or not other.runs:
                if self.counter.merge(added, rest, len(more)):
                    break
                if self.spill_folder is None or len(self.counter.table):
                    self._make_room()
                    continue
            end = self.counter.bytes_in + len(more)
            table: CountSource = SortedCounts(other.counter.table.export())
            later = [Shifted(source, end) for source in (table, *other.runs)]
            self._take_run([SortedCounts(rest.table.export()), *later], end + added.bytes_in)
            break
        self.pruned_pieces = pruned_pieces
        self.pruned_bytes = pruned_bytes

    @property
    def pending(self) -> int:
        """Bytes that are not counted yet, with the held ones."""
        return self.counter.pending + len(self.held)

    def pretokens(self, in_order: bool) -> Arrays:
        """(data, sizes, counts, firsts) of the different pre-tokens.

        data: uint8 [bytes], end to end. sizes: uint32 [n]. counts: uint64 [n]. firsts: uint64 [n],
        the offset in the text of the first occurrence. in_order: sort by `firsts`. After a spill,
        the arrays are on the disk, too. Raises OSError.
        """
        self._parts.forget()
        if self.runs:
            assert self.spill_folder is not None
            data, sizes, counts, firsts = count_runs.on_disk(self.spill_folder, self._sums())
            self._known = self.counter.bytes_in, self.pending, len(sizes)
        else:
            data, sizes, counts, firsts = self.counter.table.export()
        arrays = data, sizes, counts, firsts
        return count_runs.in_order(arrays) if in_order else arrays

    def n_pretokens(self) -> int:
        """Number of different pre-tokens. After a spill, counts are read again. Raises OSError."""
        if not self.runs:
            return len(self.counter.table)
        place = self.counter.bytes_in, self.pending
        if self._known[:2] != place:
            self._known = *place, sum(len(sizes) for _, sizes, _, _ in self._sums())
        return self._known[2]

    def in_memory(self) -> PretokenCounter:
        """A counter without a limit that has all counts, and nothing pending."""
        whole = self._fresh(self.counter.bytes_in, b"")
        whole.set_limit(0)
        for arrays in self._sums():
            whole.table.load(*arrays)
        return whole

    def getstate(self) -> tuple[Any, Any, tuple[int, int]]:
        """((bytes taken in, pending bytes, held bytes), arrays, (pre-tokens, bytes) pruned)."""
        place = *self.counter.getstate(), self.held
        return place, self._exported(), (self.pruned_pieces, self.pruned_bytes)

    def setstate(self, state: Any) -> None:
        """Take the state from `getstate`. `self` must be fresh.

        Raises ValueError or TypeError for a damaged state, and MemoryLimitExceeded. Do not use
        `self` after that.
        """
        (bytes_in, pending, held), arrays, (pruned_pieces, pruned_bytes) = state
        arrays = [np.array(array) for array in arrays]
        taken = _taken_of(held, self.errors)
        if min(pruned_pieces, pruned_bytes - pruned_pieces) < 0:
            raise ValueError(f"{pruned_bytes} bytes of {pruned_pieces} pruned pre-tokens")
        _, sizes, counts, firsts = arrays
        check_counts(sizes, counts, firsts, bytes_in, bytes_in - len(pending) - pruned_bytes)
        limit = self.counter.table.limit
        if not self.counter.table.load(*arrays):
            if self.spill_folder is None:
                why = f"the saved counts need more memory than memory_limit, {limit} bytes"
                raise MemoryLimitExceeded(why, limit=limit)
            self._take_run([SortedCounts((arrays[0], sizes, counts, firsts))], 0)
        self.counter.setstate(bytes_in, pending)
        self._taken = {bytes_in: taken}
        self.pruned_pieces, self.pruned_bytes = int(pruned_pieces), int(pruned_bytes)

    @property
    def _block(self) -> int:
        return min(BLOCK, _PER_THREAD * self.num_threads)

    def _count(self, chunk: Text, final: bool) -> None:
        counter = self.counter
        if isinstance(chunk, str):
            if counter.is_in_character:
                self._feed(chunk, 0, None, final, False)  # raises, or takes nothing in
                return
            chunk = str.__str__(chunk)
            if has_surrogate(chunk, 0, len(chunk)):
                chunk = text_bytes(chunk, counter.errors)
            elif is_wide(chunk):
                self._count_wide(chunk, final)
                return
        block = self._block
        stop, size = counter.part_end(chunk, 0, block)
        # Blocks and parts are counted one by one, so nothing of them is before all are checked.
        is_checked = stop < size or self._parts.are_many(size)
        if is_checked:
            if not isinstance(chunk, (str, bytes)):  # a memoryview counts its users without a lock
                shared: Any = np.frombuffer(chunk, np.uint8)
                chunk = shared
            self._parts.check(counter, chunk, size, final)
        start = 0
        while True:
            is_end = final and stop == size
            self._count_parts(
                self._parts.of_bytes(self.counter, chunk, start, stop, is_end), is_checked
            )
            if stop == size:
                return
            start = stop
            stop, _ = self.counter.part_end(chunk, start, block)

    def _count_wide(self, text: str, final: bool) -> None:
        """Count a large str block by block."""
        size, step = len(text), self._block // 2
        for start in range(0, size, step):
            stop = min(start + step, size)
            is_end = final and stop == size
            parts = self._parts.of_characters(text, start, stop, is_end)
            self._count_parts(parts, True)

    def _count_parts(self, parts: list[Part], is_checked: bool) -> None:
        """Count what comes next in parallel. If it is more than one part, all has been checked.

        The first goes into the table that there is, the others are added in their order. So,
        whatever raises, what is counted is the beginning of the text, and its end is open.
        """
        first, *others = parts
        if not others:
            self._feed(*first, is_checked)
            return
        workers = self._parts.count(self.counter, others, lambda: self._feed(*first, is_checked))
        for worker, part in zip(workers, others, strict=True):
            if worker is not None and self._go_on(worker):
                self._parts.give_back(worker)
            else:
                self._feed(*part, True)

    def _go_on(self, worker: PretokenCounter) -> bool:
        """Add what was counted after all that is. False: an empty table has no room for it."""
        while not self.counter.go_on(worker):
            if not len(self.counter.table):
                return False
            self._make_room()
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
                batch = [characters_of(NO_BYTES_YET, text, True, "replace")[1] for text in batch]
            workers = self._parts.count_documents(self.counter, batch)
        except UnicodeError:
            return False
        for worker in workers or ():
            self._absorb(worker, self.counter.bytes_in, worker.bytes_in)
            self._parts.give_back(worker)
        return workers is not None

    def _feed(
        self, chunk: Text | Characters, start: int, stop: int | None, final: bool, checked: bool
    ) -> None:
        while True:
            start, is_all = feed(self.counter, chunk, start, stop, final, checked)
            if is_all:
                return
            self._make_room()

    def _absorb(self, other: PretokenCounter, shift: int, size: int) -> None:
        while not self.counter.absorb(other, shift, size):
            if self.spill_folder is not None and not len(self.counter.table):
                counts = Shifted(SortedCounts(other.table.export()), shift)
                self._take_run([counts], self.counter.bytes_in + size)
                return
            self._make_room()

    # The memory limit

    def _make_room(self) -> None:
        """Spill, or prune if that frees an eighth of the table; otherwise raise."""
        table = self.counter.table
        if self.prune_singletons:
            before = len(table)
            count, size = table.prune()
            self.pruned_pieces += count
            self.pruned_bytes += size
            if count and count * 8 >= before:
                return
        why = f"counting needs more memory than memory_limit, {table.limit} bytes"
        reason: OSError | None = None
        if self.spill_folder is not None and len(table):
            try:
                self._spill(self.spill_folder)
                return
            except OSError as error:
                reason = error
                why += f", and nothing can be written to {self.spill_folder}: {error.strerror}"
        raise MemoryLimitExceeded(
            f"{why}: there are {len(table)} different pre-tokens "
            f"{'more ' if self.runs else ''}in the first {self.counter.bytes_in} bytes, "
            f"{self.counter.pending} of them in a pre-token that has not ended. Nothing is lost: "
            "raise the limit and continue from that byte, save the counts, merge them into another "
            "trainer, or train on them",
            bytes_in=self.counter.bytes_in,
            limit=table.limit,
        ) from reason

    def _spill(self, folder: str) -> None:
        """Move the table to the disk. Raises OSError; nothing has changed then."""
        fresh = self._fresh(*self.counter.getstate())
        run = CountRun(folder, [self.counter.table.export()])
        self._counted = fresh, (*self.runs, run)
        with contextlib.suppress(OSError):  # if there is no room to make fewer runs, all stay
            while fewer := count_runs.merge_last(folder, self.runs, self._sum_memory):
                self._counted = self.counter, fewer

    def _take_run(self, sources: Sequence[CountSource], bytes_in: int) -> None:
        """End the text, and add counts that the table has no room for; `bytes_in` is the position.

        Raises MemoryLimitExceeded if they cannot be written; nothing has changed then.
        """
        assert self.spill_folder is not None
        fresh = self._fresh(bytes_in, b"")
        table = SortedCounts(self.counter.table.export())
        try:
            run = CountRun(self.spill_folder, sum_counts([table, *sources], self._sum_memory))
        except OSError as error:
            raise MemoryLimitExceeded(
                f"the counts need more memory than memory_limit, {fresh.table.limit} bytes, and "
                f"cannot be written to {self.spill_folder}: {error.strerror}. Nothing was added",
                bytes_in=self.counter.bytes_in,
                limit=fresh.table.limit,
            ) from error
        self._counted = fresh, (*self.runs, run)

    def _fresh(self, bytes_in: int, pending: bytes) -> PretokenCounter:
        """A counter with nothing counted, at a position in the text."""
        fresh = self.counter.worker()
        fresh.set_limit(self.counter.table.limit)
        fresh.setstate(bytes_in, pending)
        return fresh

    @property
    def _sum_memory(self) -> int:
        return self.counter.table.limit or _SUM_MEMORY  # bytes

    def _sums(self) -> Iterator[Arrays]:
        """All counts, a part of the pre-tokens at a time."""
        table = SortedCounts(self.counter.table.export())
        return sum_counts([table, *self.runs], self._sum_memory)

    def _exported(self) -> Arrays:
        """All counts, in memory, in an order that does not depend on the hash of this process."""
        table = self.counter.table
        return count_runs.in_order(
            count_runs.in_memory(self._sums()) if self.runs else table.export()
        )


def _taken_of(held: bytes, errors: str) -> BytesTaken:
    """What gave this `Counting.held`. Raises ValueError for what the policy never holds."""
    if held and not (errors == "replace" and unfinished_size(held) == len(held)):
        raise ValueError(f"{held!r} is not the beginning of a character")
    return BytesTaken(held)
