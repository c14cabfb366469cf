"""Counts the pre-tokens of texts, in chunks or as documents, on several threads.

`Counting` divides the work, and the core counts. Large texts are cut where the pattern makes both
sides independent of each other, and each thread counts its part into a table of its own. A table is
added to the total in one step, together with its number of bytes, so that `bytes_in` is right
whatever interrupts a call.

The public class is in `trainer.py`; `engines/source_units.py` repairs text that is not UTF-8.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._core.encode import (
    Cuts,
    Scanner,
    SpecialMatcher,
    bytes_of,
    has_surrogate,
    text_bytes,
    unfinished_size,
)
from .._core.train import PretokenCounter
from ..engines.source_units import NO_BYTES_YET, BytesTaken, characters_of
from ..patterns.pattern import Pattern
from ..threads import map_in_threads
from .saved_counts import check_counts

if TYPE_CHECKING:
    from .._types import Text

    Part = tuple[Text, int, int, bool]  # bytes [start, stop); whether the text ends there

Arrays: TypeAlias = tuple[Any, Any, Any, Any]
"""(data, sizes, counts, firsts), as `Counting.pretokens` returns them."""

_NO_SPECIAL = SpecialMatcher([], frozenset(), ())
LARGE = 1 << 20  # texts of at least this many bytes are worth starting threads for
BLOCK = 1 << 25  # bytes to read, or to count, at a time
_LARGE_STR = 1 << 16  # characters; CPython encodes a larger str at half the speed
_PER_THREAD = 1 << 22  # bytes that a thread counts between two checks for signals
_GATHERED = 1 << 16  # pre-tokens to put in order at a time
_LONG = 256  # bytes; pre-tokens with a larger mean size are copied one by one


class Counting:
    """Counts the pre-tokens of a sequence of texts. The caller makes only one call at a time."""

    def __init__(self, pattern: Pattern, errors: str, num_threads: int):
        policy = "surrogateescape" if errors == "surrogateescape" else "strict"
        scanner, cuts = scan_tables(pattern)
        self.counter = PretokenCounter(scanner, policy)
        self.errors = errors
        self.num_threads = num_threads
        self._cuts = cuts
        self._idle: list[PretokenCounter] = []  # reused, because growing their tables is slow
        # With "replace": the state of decoding, by the value of `bytes_in` to which it belongs. If
        # a call stops inside its text, `bytes_in` has no state here, and no bytes are held.
        self._taken: dict[int, BytesTaken] = {}

    @property
    def taken(self) -> BytesTaken:
        """With "replace": the state of decoding after the last chunk."""
        return self._taken.get(self.counter.bytes_in, NO_BYTES_YET)

    @property
    def held(self) -> bytes:
        """With "replace": the bytes of an unfinished character at the end of the last chunk."""
        return self.taken.partial

    def update(self, chunk: Text, final: bool) -> None:
        """Count the pre-tokens that `chunk` completes; see Trainer.update."""
        if self.errors != "replace":
            self._count(chunk, final)
            return
        before, now = self.counter.bytes_in, self.taken
        # The offsets in errors refer to the repaired text, which is counted.
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

        If a text raises, the texts before it are counted.
        """
        batch: list[Text] = []
        size = 0
        try:
            for text in texts:
                if not isinstance(text, (str, bytes)):
                    text = bytes_of(text)  # its owner may reuse the buffer for the next text
                if len(text) >= LARGE:
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
        """End the text. Raises UnicodeDecodeError."""
        self.counter.feed(self._last_bytes(), final=True)

    def _last_bytes(self) -> bytes:
        """The held bytes, repaired as at the end of a text."""
        return characters_of(self.taken, b"", True, "replace")[1].encode()

    def merge(self, other: Counting) -> None:
        """End the text and add the counts of `other`, as if its text came next. Atomic."""
        self.counter.go_on(other.counter, self._last_bytes())

    @property
    def pending(self) -> int:
        """Bytes that are not counted yet, including the held ones."""
        return self.counter.pending + len(self.held)

    def pretokens(self, in_order: bool) -> Arrays:
        """(data, sizes, counts, firsts) of the different pre-tokens.

        data: uint8 [bytes], all pre-tokens end to end. sizes: uint32 [n]. counts: uint64 [n].
        firsts: uint64 [n], the offset of the first occurrence in the text. in_order: sort by
        `firsts`.
        """
        self._idle.clear()
        arrays = self.counter.table.export()
        return _in_order(arrays) if in_order else arrays

    def getstate(self) -> tuple[Any, Any]:
        """((bytes_in, pending bytes, held bytes), arrays)."""
        # Sorted, because the order of the table depends on the hash of this process.
        return (*self.counter.getstate(), self.held), _in_order(self.counter.table.export())

    def setstate(self, state: Any) -> None:
        """Restore the state from `getstate`. `self` must be fresh.

        Raises ValueError or TypeError for a damaged state. Do not use `self` after that.
        """
        (bytes_in, pending, held), arrays = state
        arrays = [np.array(array) for array in arrays]
        if held and not (self.errors == "replace" and unfinished_size(held) == len(held)):
            raise ValueError(f"{held!r} is not the beginning of a character")
        _, sizes, counts, firsts = arrays
        check_counts(sizes, counts, firsts, bytes_in, bytes_in - len(pending))
        self.counter.table.load(*arrays)
        self.counter.setstate(bytes_in, pending)
        self._taken = {bytes_in: BytesTaken(held)}

    @property
    def _block(self) -> int:
        return min(BLOCK, _PER_THREAD * self.num_threads)

    def _count(self, chunk: Text, final: bool) -> None:
        counter = self.counter
        if isinstance(chunk, str):
            if counter.is_in_character:
                self.counter.feed(chunk, final=final)  # raises, unless `chunk` is empty
                return
            chunk = str.__str__(chunk)
            if has_surrogate(chunk, 0, len(chunk)):
                chunk = text_bytes(chunk, counter.errors)
            elif len(chunk) >= _LARGE_STR and not chunk.isascii():
                step = self._block // 2
                for start in range(0, len(chunk), step):
                    is_end = final and start + step >= len(chunk)
                    part = text_bytes(chunk[start : start + step], "strict")
                    self._count_blocks(part, is_end, True)
                return
        self._count_blocks(chunk, final, False)

    def _count_blocks(self, chunk: Text, final: bool, is_checked: bool) -> None:
        """Count a text block by block. is_checked: whether it is known to be valid."""
        counter, block = self.counter, self._block
        stop, size = counter.part_end(chunk, 0, block)
        # An invalid text must not be counted in part, so all parts are checked first.
        if not is_checked and (stop < size or self._is_cut(size)):
            is_checked = True
            if not isinstance(chunk, (str, bytes)):  # threads must not share a memoryview
                shared: Any = np.frombuffer(chunk, np.uint8)
                chunk = shared
            here = counter.bytes_in
            parts = self._parts_of(chunk, 0, size, final)
            map_in_threads(lambda part: counter.check_bytes(*part, here), parts, len(parts))
        start = 0
        while True:
            is_end = final and stop == size
            self._count_parts(self._parts_of(chunk, start, stop, is_end), is_checked)
            if stop == size:
                return
            start = stop
            stop, _ = counter.part_end(chunk, start, block)

    def _count_parts(self, parts: list[Part], is_checked: bool) -> None:
        """Count the next parts of the text in parallel. If there are several, they must be checked.

        The first part is counted into the total, and the tables of the others are added in order,
        so that whatever raises, a prefix of the text is counted and the text is still open.
        """
        first, *others = parts
        if not others:
            self.counter.feed(*first, is_checked)
            return
        workers = [self._worker() for _ in others]
        calls = [(self.counter, *first, True)]
        calls += [(worker, *part, True) for worker, part in zip(workers, others, strict=True)]
        map_in_threads(lambda call: PretokenCounter.feed(*call), calls, len(calls))
        self._add(workers)

    def _count_documents(self, batch: list[Text]) -> None:
        """Count texts in parallel. If one is invalid, count them one by one until it raises."""
        if not batch:
            return
        workers: list[PretokenCounter] | None
        try:
            texts = batch
            if self.errors == "replace":
                texts = [characters_of(NO_BYTES_YET, text, True, "replace")[1] for text in batch]
            ends = np.cumsum([len(text) for text in texts])
            total = int(ends[-1])
            n_parts = min(self.num_threads, total // (LARGE // 4) + 1)
            bounds = np.searchsorted(ends, np.arange(n_parts + 1) * total / n_parts).tolist()
            bounds[0], bounds[-1] = 0, len(texts)
            spans = [(a, b) for a, b in itertools.pairwise(bounds) if a < b]
            workers = [self._worker() for _ in spans]
            calls = [(worker, texts, *span) for worker, span in zip(workers, spans, strict=True)]
            map_in_threads(lambda call: PretokenCounter.count_documents(*call), calls, len(calls))
        except UnicodeError:
            workers = None
        if workers is not None:
            self._add(workers)
            return
        for text in batch:
            self.update(text, True)

    def _is_cut(self, size: int) -> bool:
        """Whether a text of this size is cut into parts for threads."""
        return self.num_threads > 1 and size >= LARGE

    def _parts_of(self, chunk: Text, start: int, stop: int, final: bool) -> list[Part]:
        """Cut bytes start:stop into parts for the threads. final: the text ends at `stop`."""
        n_parts = self.num_threads if self._is_cut(stop - start) else 1
        if isinstance(chunk, str) and n_parts > 1:  # cuts in a str would be offsets in characters
            chunk = chunk.encode()
        bounds = [start]
        for part in range(1, n_parts):
            about = max(start + (stop - start) * part // n_parts, bounds[-1] + 1)
            cut = self._cuts.find(chunk, _NO_SPECIAL, about, stop)
            if cut < 0:
                break
            bounds.append(cut)
        bounds.append(stop)
        return [(chunk, a, b, final and b == stop) for a, b in itertools.pairwise(bounds)]

    def _worker(self) -> PretokenCounter:
        if not self._idle:
            return self.counter.worker()
        worker = self._idle.pop()
        worker.restart()
        return worker

    def _add(self, workers: list[PretokenCounter]) -> None:
        """Add the counts of workers, in this order."""
        for worker in workers:
            self.counter.go_on(worker)
            self._idle.append(worker)


@functools.lru_cache(maxsize=16)
def scan_tables(pattern: Pattern) -> tuple[Scanner, Cuts]:
    """The scanner that finds pre-tokens, and the tables that say where text may be cut."""
    scanner = Scanner(pattern, pattern.substitutes)
    return scanner, Cuts(scanner, pattern.clean_cut_pairs)


def _in_order(arrays: Arrays) -> Arrays:
    """The arrays, sorted by the offset of the first occurrence."""
    data, sizes, counts, firsts = arrays
    order = np.argsort(firsts, kind="stable")
    begins = (np.cumsum(sizes, dtype=np.int64) - sizes)[order]
    sizes = sizes[order]
    parts = [data[:0]]
    for i in range(0, len(begins), _GATHERED):
        starts, lengths = begins[i : i + _GATHERED], sizes[i : i + _GATHERED]
        if lengths.sum(dtype=np.int64) > len(lengths) * _LONG:
            ends = (starts + lengths).tolist()
            parts += [data[a:b] for a, b in zip(starts.tolist(), ends, strict=True)]
            continue
        # The source of each byte: the start of its pre-token, plus its offset in the pre-token.
        shifts = starts - (np.cumsum(lengths, dtype=np.int64) - lengths)
        moved = np.repeat(shifts, lengths)
        parts.append(data[moved + np.arange(len(moved))])
    return np.concatenate(parts), sizes, counts[order], firsts[order]
