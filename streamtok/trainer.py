"""Trainer: a vocabulary from a stream of text.

Two steps. Text, in chunks of any size, becomes counted pieces (`_core/counter.pyx`), for which
memory grows with the number of *different* pieces only; and their pairs of neighbours are merged in
the order of their counts (`merging.py`). `reference_trainer.py` says what comes out.

Counting has state that can be merged, pickled and saved; merging has none that is worth it, so that
an interrupted `train` can just be called again.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import itertools
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ._core.counter import PieceCounter, text_size
from ._core.scanner import Scanner
from ._core.text import check_policy
from .errors import MemoryLimitExceeded, StreamInUseError
from .merging import Progress, check_merging, merge_pairs, tokens_of
from .pattern import Pattern
from .registry import _CL100K_PATTERN, _O200K_PATTERN, _R50K_PATTERN
from .trainer_state import load_counts, save_counts
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .encoding import Encoding, Text

__all__ = ["PATTERNS", "Trainer"]

Tie = Literal["raw", "hf", "first"]

PATTERNS = {
    "gpt2": _R50K_PATTERN,
    "cl100k": _CL100K_PATTERN,
    "o200k": _O200K_PATTERN,
    "llama3": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "nanochat": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
    ),
}

_WINDOW = 1 << 25  # bytes that are counted between two looks at the outside world
_LARGE = 1 << 20  # bytes from which it pays to share a text between threads


class Trainer:
    """Counts the pieces of a stream of text, and merges their most frequent pairs.

    >>> trainer = Trainer("gpt2")
    >>> trainer.update("low low lo")
    >>> trainer.update("w", final=True)
    >>> trainer.train(258).encode("low")
    [257]

    The law: however a text is cut into chunks, the counts are those of the whole. A chunk is str or
    bytes-like; bytes may be cut inside a character. One thread at a time: a call during another one
    raises StreamInUseError (and the call may itself use several threads, see `num_threads`).
    """

    def __init__(
        self,
        pattern: str | Pattern = "cl100k",
        *,
        errors: str = "strict",
        num_threads: int | None = None,
        memory_limit: int | None = None,
        prune_singletons: bool = False,
    ):
        """pattern: a name of `PATTERNS` (gpt2, cl100k, o200k, llama3, nanochat) or a split pattern.

        errors: for bytes that are no UTF-8, "strict" (raises UnicodeDecodeError before anything of
        the window is counted), "replace" or "surrogateescape" (counts them as they are).
        num_threads: for counting large texts; default: the cores this process may use.
        memory_limit: bytes that counting may hold; past it `update` raises MemoryLimitExceeded, and
        nothing is lost. prune_singletons: instead, forget the pieces seen once until then, which
        makes later counts of them too low; `pruned_pieces` and `pruned_bytes` tell how many.

        Raises PatternError and UnsupportedPatternError for a pattern without tables.
        """
        check_policy(errors)
        if not isinstance(pattern, Pattern):
            pattern = _compiled(PATTERNS.get(pattern, pattern))
        if num_threads is None:
            num_threads = _available_cores()
        if not isinstance(num_threads, int) or num_threads < 1:
            raise ValueError(f"num_threads is at least 1, not {num_threads!r}")
        self.pattern = pattern
        self.errors = errors
        self.num_threads = num_threads
        self.prune_singletons = prune_singletons
        self.pruned_pieces = 0  # different pieces that were forgotten; each had been seen once
        self.pruned_bytes = 0
        self.notes: dict[str, Any] = {}  # the caller's own, for JSON; `save_counts` keeps them
        self._lock = threading.RLock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._counter = self._new_counter()
        self.memory_limit = memory_limit

    def _new_counter(self) -> PieceCounter:
        ascii_classes = [self.pattern.class_of(point) for point in range(128)]
        pairs = self.pattern.clean_cut_pairs[np.ix_(ascii_classes, ascii_classes)]
        policy = "surrogateescape" if self.errors == "surrogateescape" else "strict"
        return PieceCounter(Scanner(self.pattern), pairs, policy, 0)

    # Counting

    def update(self, chunk: Text, final: bool = False) -> None:
        """Count the pieces of the text that goes on with `chunk`; with `final` it ends there.

        Raises UnicodeDecodeError with the place among all bytes taken in; MemoryLimitExceeded;
        UnicodeEncodeError for lone surrogates in a str. A chunk larger than 32 MiB is counted in
        windows of that size, and an exception leaves those before it counted: `bytes_in` tells how
        far it came. Costs O(len(chunk)).
        """
        with self._alone():
            if self.errors == "replace":
                chunk = self._repaired(chunk, final)
            size = text_size(chunk)
            for start in range(0, size, _WINDOW) or [0]:
                stop = min(start + _WINDOW, size)
                self._count_window(chunk, start, stop, final and stop == size)

    def end_document(self) -> None:
        """The text ends here: no piece goes on into what comes next."""
        self.update(b"", final=True)

    def update_documents(self, texts: Iterable[Text]) -> None:
        """Count texts each of which stands for itself; a text that is open is ended before.

        Raises as `update`; what came before in `texts` may have been counted by then.
        """
        with self._alone():
            self.end_document()
            batch: list[Text] = []
            size = 0
            for text in texts:
                if len(text) >= _LARGE:
                    self._count_documents(batch)
                    batch, size = [], 0
                    self.update(text, final=True)
                    continue
                batch.append(text)
                size += len(text)
                if size >= _WINDOW // 2:
                    self._count_documents(batch)
                    batch, size = [], 0
            self._count_documents(batch)

    def update_file(
        self, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """Count a file as one text, in windows of 32 MiB. progress: gets (bytes done, bytes)."""
        with self._alone(), open(path, "rb", buffering=0) as file:
            self.end_document()
            total = os.fstat(file.fileno()).st_size
            buffer = memoryview(bytearray(min(_WINDOW, total + 1) or 1))
            done = 0
            while size := file.readinto(buffer):
                self.update(buffer[:size])
                done += size
                if progress:
                    progress(done, max(done, total))
            self.end_document()

    def merge(self, other: Trainer) -> None:
        """Add what `other` has counted, as if it had come after all that came here.

        Raises ValueError where `other` has another pattern or an open text, MemoryLimitExceeded;
        nothing is added then.
        """
        if other.pattern.source != self.pattern.source or other.errors != self.errors:
            raise ValueError("the other trainer has another pattern, or other errors")
        if other.pending:
            raise ValueError(
                f"the other trainer has an open text with {other.pending} bytes that are not "
                "counted yet: call its end_document()"
            )
        with self._alone(), other._alone():
            self.end_document()
            self._absorb(other._counter, self.bytes_in, other.bytes_in)
            self.pruned_pieces += other.pruned_pieces
            self.pruned_bytes += other.pruned_bytes

    @property
    def bytes_in(self) -> int:
        """int: bytes of UTF-8 taken in (under "replace": after the repair)."""
        return self._counter.bytes_in

    @property
    def pending(self) -> int:
        """int: bytes taken in that are not counted yet: those of the open piece."""
        return self._counter.pending

    @property
    def n_pieces(self) -> int:
        """int: how many different pieces there are."""
        return len(self._counter.table)

    @property
    def nbytes(self) -> int:
        """int: bytes of memory that counting holds."""
        return self._counter.nbytes

    @property
    def memory_limit(self) -> int | None:
        """int | None: bytes that counting may hold. It can be set."""
        return self._counter.table.limit or None

    @memory_limit.setter
    def memory_limit(self, limit: int | None) -> None:
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise ValueError(f"memory_limit is a number of bytes or None, not {limit!r}")
        self._counter.set_limit(limit or 0)

    def piece_counts(self) -> dict[bytes, int]:
        """dict[bytes, int]: how often each piece was seen, in the order of the first times."""
        data, sizes, counts, _ = self._pieces(in_order=True)
        ends = np.cumsum(sizes, dtype=np.int64).tolist()
        blob = data.tobytes()
        pieces = (blob[a:b] for a, b in itertools.pairwise([0, *ends]))
        return dict(zip(pieces, counts.tolist(), strict=True))

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

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise StreamInUseError("this trainer is being used by another thread")
        try:
            yield
        finally:
            self._lock.release()

    def _count_window(self, chunk: Text, start: int, stop: int, final: bool) -> None:
        counter = self._counter
        cuts: list[int] = []
        if self.num_threads > 1 and stop - start >= _LARGE:
            cuts = counter.cuts(chunk, start, stop, self.num_threads)
        if len(cuts) < 3 or not self._count_parts(chunk, start, stop, final, cuts):
            self._feed(chunk, start, stop, final)

    def _count_parts(
        self, chunk: Text, start: int, stop: int, final: bool, cuts: list[int]
    ) -> bool:
        """Count the parts between the cuts in parallel; False, and nothing done: no memory."""
        counter = self._counter
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
        counter.check_bytes(chunk, cuts[-1], stop, final)
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
        n_parts = min(self.num_threads, total // (_LARGE // 4) + 1)
        bounds = np.searchsorted(starts, np.arange(n_parts + 1) * total / n_parts).tolist()
        bounds[0], bounds[-1] = 0, len(batch)
        parts = [(a, b) for a, b in itertools.pairwise(bounds) if a < b]
        workers = [self._counter.worker() for _ in parts]
        base = self._counter.bytes_in
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
        counter = self._counter
        before = counter.bytes_in
        while not counter.feed(chunk, start, stop, final):
            start += counter.bytes_in - before
            before = counter.bytes_in
            self._make_room()

    def _absorb(self, other: PieceCounter, shift: int, size: int) -> None:
        while not self._counter.absorb(other, shift, size):
            self._make_room()

    def _make_room(self) -> None:
        """Prune if that is allowed and helps, else raise."""
        table = self._counter.table
        if self.prune_singletons:
            before = len(table)
            pieces, size = table.prune()
            self.pruned_pieces += pieces
            self.pruned_bytes += size
            if pieces * 8 >= before:
                return
        raise MemoryLimitExceeded(
            f"counting needs more than memory_limit, {table.limit} bytes: "
            f"{self.n_pieces} different pieces in the first {self.bytes_in} bytes. They are "
            "kept: raise the limit and go on from that byte, save or merge the counts elsewhere, "
            "or train on what is there",
            bytes_in=self.bytes_in,
            limit=table.limit,
        )

    # Merging

    def train(
        self,
        vocab_size: int,
        *,
        special_tokens: Sequence[str] = (),
        min_frequency: int = 1,
        tie: Tie = "raw",
        name: str = "trained",
        progress: Progress | None = None,
    ) -> Encoding:
        """Encoding: ids 0 … 255 are the bytes, then the merges in order, then the special tokens.

        vocab_size: of all of them together; smaller where no pair is left. min_frequency: pairs
        seen less often are not merged. tie: which of the most frequent pairs comes first: "raw",
        the smallest (left id, right id), as rustbpe; "hf", the same over the order of Hugging
        Face's ByteLevel alphabet; "first", the one that comes first in the text, as minbpe.
        progress: gets (merges done, merges wanted). An open text is ended before.

        Raises ValueError for impossible arguments. Counts stay as they are, also when interrupted.
        """
        from .encoding import Encoding

        specials = list(special_tokens)
        if len(set(specials)) != len(specials) or not all(
            isinstance(text, str) and text for text in specials
        ):
            raise ValueError("special tokens are different str with at least one character")
        lefts, rights = self._merge(vocab_size - len(specials), min_frequency, tie, progress)
        tokens = tokens_of(lefts, rights)
        offsets = np.cumsum([0, *map(len, tokens)], dtype=np.uint32)
        ids = np.arange(len(tokens), dtype=np.uint32)
        return Encoding(
            name,
            pat_str=self.pattern.source,
            mergeable_ranks=Vocabulary(b"".join(tokens), offsets, ids),
            special_tokens={text: len(tokens) + i for i, text in enumerate(specials)},
        )

    def merges(
        self,
        vocab_size: int,
        *,
        min_frequency: int = 1,
        tie: Tie = "raw",
        progress: Progress | None = None,
    ) -> list[tuple[bytes, bytes]]:
        """list[(bytes, bytes)]: the merges in order; arguments as for `train`."""
        lefts, rights = self._merge(vocab_size, min_frequency, tie, progress)
        tokens = tokens_of(lefts, rights)
        return [(tokens[a], tokens[b]) for a, b in zip(lefts, rights, strict=True)]

    def _merge(
        self, vocab_size: int, min_frequency: int, tie: str, progress: Progress | None
    ) -> tuple[list[int], list[int]]:
        check_merging(vocab_size, min_frequency, tie)
        with self._alone():
            limit, self.memory_limit = self.memory_limit, None  # it is for counting
            try:
                self.end_document()
            finally:
                self.memory_limit = limit
        data, sizes, counts, _ = self._pieces(in_order=tie == "first")
        return merge_pairs(
            data,
            sizes,
            counts,
            vocab_size,
            min_frequency=min_frequency,
            tie=tie,
            progress=progress,
        )

    def _pieces(self, in_order: bool) -> tuple[Any, Any, Any, Any]:
        """Pieces in a row, their sizes, counts and places; in the order of the places if wanted."""
        with self._alone():
            data, sizes, counts, firsts = self._counter.table.export()
        if in_order:
            order = np.argsort(firsts, kind="stable")
            starts = (np.cumsum(sizes, dtype=np.int64) - sizes)[order]
            sizes, counts, firsts = sizes[order], counts[order], firsts[order]
            # The byte at each new place, from where it was.
            moved = np.repeat(starts - (np.cumsum(sizes, dtype=np.int64) - sizes), sizes)
            data = data[moved + np.arange(len(data))]
        return data, sizes, counts, firsts

    # State

    def save_counts(self, path: str | os.PathLike[str]) -> None:
        """Write what was counted, whole or not at all; `load_counts` goes on from there."""
        save_counts(self, path)

    @classmethod
    def load_counts(cls, path: str | os.PathLike[str], **settings: Any) -> Trainer:
        """Trainer: what `save_counts` wrote. settings: as for Trainer, but pattern and errors.

        Raises StateError for another file or a damaged one. Nothing is unpickled.
        """
        return load_counts(cls, path, settings)

    def _state(self) -> Any:
        with self._alone():
            place = *self._counter.getstate(), self._decoder.getstate()[0]
            return place, self._pieces(in_order=True), (self.pruned_pieces, self.pruned_bytes)

    def _restore(self, state: Any) -> None:
        (bytes_in, pending, unfinished), arrays, pruned = state
        if not self._counter.table.load(*(np.array(array) for array in arrays)):
            raise MemoryLimitExceeded(
                f"the saved counts need more than memory_limit, {self.memory_limit} bytes",
                limit=self.memory_limit or 0,
            )
        self._counter.setstate(bytes_in, pending)
        self._decoder.setstate((unfinished, 0))
        self.pruned_pieces, self.pruned_bytes = map(int, pruned)

    def __getstate__(self) -> object:
        settings = {
            "errors": self.errors,
            "num_threads": self.num_threads,
            "memory_limit": self.memory_limit,
            "prune_singletons": self.prune_singletons,
        }
        return self.pattern, settings, self.notes, self._state()

    def __setstate__(self, value: Any) -> None:
        pattern, settings, notes, state = value
        self.__init__(pattern, **settings)  # type: ignore[misc]
        self.notes = notes
        self._restore(state)

    def __repr__(self) -> str:
        return f"<Trainer: {self.n_pieces} different pieces in {self.bytes_in} bytes>"


@functools.lru_cache(maxsize=16)
def _compiled(source: str) -> Pattern:
    return Pattern.compile(source)


def _available_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
