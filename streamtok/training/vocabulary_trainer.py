"""Training below the level of an `Encoding`: text to counted pre-tokens to a vocabulary.

Two steps. Text, in chunks of any size, becomes counted pre-tokens (`counting.py`), for which memory
grows with the number of *different* pre-tokens only; and their pairs of neighbours are merged in the
order of their counts (`merging.py`). `reference/bpe_training.py` says what comes out.

Counts have state that can be merged, pickled and saved; merging has none that is worth it, so that
an interrupted `train` can just be called again.
"""

from __future__ import annotations

import copy
import functools
import itertools
import os
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._core.encode import check_policy
from ..errors import MemoryLimitExceeded, StreamInUseError
from ..parallel.threads import usable_cores
from ..patterns.named import PATTERNS
from ..patterns.pattern import Pattern
from ..vocabulary.table import Vocabulary
from .counting import WINDOW, Counting
from .merging import Progress, check_merging, check_specials, merge_pairs, tokens_of
from .saved_counts import SavedCounts, damaged, read_counts, save_counts

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._types import Text

__all__ = ["Tie", "VocabularyTrainer"]

Tie = Literal["raw", "hf", "first"]


class _Alone:
    """`with` it, no other call uses the trainer; its counts.

    A class, since a generator needs memory to end, and what was counted by then would have been
    counted by a call that failed.
    """

    __slots__ = ("_counting", "_lock")

    def __init__(self, lock: threading.Lock, counting: Counting):
        self._lock = lock
        self._counting = counting

    def __enter__(self) -> Counting:
        # A lock that the same thread cannot take twice, either.
        if not self._lock.acquire(blocking=False):
            raise StreamInUseError("this trainer is being used by another call")
        return self._counting

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        self._lock.release()


class VocabularyTrainer:
    """Counts the pre-tokens of a stream of text, and merges their pairs; see `Trainer`."""

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

        errors: for bytes that are not UTF-8, "strict" (raises UnicodeDecodeError), "replace" (as
        `bytes.decode`, and lone surrogates in a str likewise) or "surrogateescape" (counts them as
        they are).
        num_threads: for counting large texts; default: the cores this process may use.
        memory_limit: bytes that counting may hold; past it `update` raises MemoryLimitExceeded, and
        nothing is lost: `bytes_in` says from where to go on. prune_singletons: instead, forget the
        pieces seen once until then, which makes later counts of them too low; `pruned_pieces` and
        `pruned_bytes` tell how many.

        Raises PatternError and UnsupportedPatternError for a pattern without tables.
        """
        check_policy(errors)
        if not isinstance(pattern, Pattern):
            pattern = _compiled(PATTERNS.get(pattern, pattern))
        if num_threads is None:
            num_threads = usable_cores()
        if not isinstance(num_threads, int) or num_threads < 1:
            raise ValueError(f"num_threads is at least 1, not {num_threads!r}")
        self._pattern = pattern
        self._counting = Counting(pattern, errors, num_threads, prune_singletons)
        self._lock = threading.Lock()
        self.memory_limit = memory_limit
        self.notes: dict[str, Any] = {}  # the caller's own, for JSON; kept with the counts

    def _alone(self) -> _Alone:
        return _Alone(self._lock, self._counting)

    # Counting

    def update(self, chunk: Text, final: bool = False) -> None:
        """Count the pieces of the text that goes on with `chunk`; with `final` it ends there.

        Raises UnicodeDecodeError with the place among all bytes taken in; UnicodeEncodeError for
        surrogates in a str, except under "replace"; MemoryLimitExceeded, MemoryError or
        KeyboardInterrupt, after which a part of `chunk` may have been taken in: `bytes_in` tells
        how far it came, and that is not inside a character. Under "replace", that part is one of
        the repaired text. Costs O(len(chunk)).
        """
        with self._alone() as counting:
            counting.update(chunk, final)

    def end_document(self) -> None:
        """The text ends here: no piece goes on into what comes next."""
        self.update(b"", final=True)

    def update_documents(self, texts: Iterable[Text]) -> None:
        """Count texts each of which stands for itself; a text that is open is ended before.

        Raises as `update`, and what `texts` raises. Then the texts before the one at fault are
        counted, it and those after it are not; where the limit or the memory ended, `bytes_in`
        tells how far it came.
        """
        if isinstance(texts, (str, bytes, bytearray, memoryview)):
            raise TypeError("texts is an iterable of texts, not one text: use update(text)")
        iterator = iter(texts)
        with self._alone() as counting:
            counting.update(b"", True)
            counting.update_documents(iterator)

    def update_file(
        self, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """Count a file as one text, in windows of 32 MiB. progress: gets (bytes done, bytes).

        A text that is open is ended before. Raises OSError, and as `update`: then the windows
        before it are counted, their text is open, and `bytes_in` tells how far it came.
        """
        with self._alone() as counting, open(path, "rb", buffering=0) as file:
            counting.update(b"", True)
            total = os.fstat(file.fileno()).st_size
            buffer = memoryview(bytearray(min(WINDOW, total + 1)))
            done = 0
            while size := file.readinto(buffer):
                counting.update(buffer[:size], False)
                done += size
                if progress:
                    progress(done, max(done, total))
            counting.update(b"", True)

    def merge(self, other: VocabularyTrainer) -> None:
        """Add what `other` has counted, as if it had come after all that came here.

        Ends the text that is open here. Raises ValueError where `other` has another pattern, other
        `errors` or an open text; UnicodeDecodeError where the text here ends inside a character;
        MemoryLimitExceeded, MemoryError. Nothing is added then, and nothing ended. `other` stays
        as it is.
        """
        if not isinstance(other, VocabularyTrainer):
            raise TypeError(f"a Trainer can be merged, not {type(other).__name__}")
        if other is self:
            raise ValueError("a trainer cannot be merged with itself")
        with self._alone() as counting, other._alone() as more:
            if (other.errors, other.pattern.source, other.pattern.is_composed) != (
                self.errors,
                self.pattern.source,
                self.pattern.is_composed,
            ):
                raise ValueError("the other trainer has another pattern, or other errors")
            if more.pending:
                raise ValueError(
                    f"the other trainer has an open text with {more.pending} bytes that are not "
                    "counted yet: call its end_document()"
                )
            counting.merge(more)

    @property
    def pattern(self) -> Pattern:
        """Pattern: what cuts the text into pieces."""
        return self._pattern

    @property
    def errors(self) -> str:
        """str: what happens to bytes that are not UTF-8."""
        return self._counting.errors

    @property
    def bytes_in(self) -> int:
        """int: bytes of UTF-8 taken in (under "replace": of the repaired text, so far)."""
        return self._counting.counter.bytes_in

    @property
    def pending(self) -> int:
        """int: bytes given that are not counted yet: those of the open piece, and under "replace"
        those that the next chunk decides, such as the first of a character."""
        return self._counting.pending

    @property
    def n_pieces(self) -> int:
        """int: how many different pieces there are."""
        return len(self._counting.counter.table)

    @property
    def nbytes(self) -> int:
        """int: bytes of memory that counting holds."""
        return self._counting.counter.nbytes

    @property
    def pruned_pieces(self) -> int:
        """int: how many different pieces were forgotten; each had been seen once until then."""
        return self._counting.pruned_pieces

    @property
    def pruned_bytes(self) -> int:
        """int: bytes of the pieces that were forgotten."""
        return self._counting.pruned_bytes

    @property
    def memory_limit(self) -> int | None:
        """int | None: bytes that counting may hold. It can be set."""
        return self._counting.counter.table.limit or None

    @memory_limit.setter
    def memory_limit(self, limit: int | None) -> None:
        is_number = isinstance(limit, int) and not isinstance(limit, bool)
        if limit is not None and not (is_number and 1 <= limit < 1 << 63):
            raise ValueError(f"memory_limit is a number of bytes or None, not {limit!r}")
        self._counting.counter.set_limit(limit or 0)

    def piece_counts(self) -> dict[bytes, int]:
        """dict[bytes, int]: how often each piece was seen, in the order of the first times."""
        with self._alone() as counting:
            data, sizes, counts, _ = counting.pieces(in_order=True)
        ends = np.cumsum(sizes, dtype=np.int64).tolist()
        blob = data.tobytes()
        pieces = (blob[a:b] for a, b in itertools.pairwise([0, *ends]))
        return dict(zip(pieces, counts.tolist(), strict=True))

    # Merging

    def train_vocabulary(
        self,
        vocab_size: int,
        *,
        special_tokens: Sequence[str] = (),
        min_frequency: int = 1,
        tie: Tie = "raw",
        progress: Progress | None = None,
    ) -> tuple[Vocabulary, dict[str, int]]:
        """The vocabulary and the ids of the special tokens; arguments as for `Trainer.train`."""
        if isinstance(special_tokens, str):
            raise TypeError("special_tokens must be a sequence of str, not one str")
        specials = list(special_tokens)
        check_specials(specials)
        lefts, rights = self._merge(vocab_size - len(specials), min_frequency, tie, progress)
        tokens = tokens_of(lefts, rights)
        offsets = np.cumsum([0, *map(len, tokens)], dtype=np.uint32)
        ids = np.arange(len(tokens), dtype=np.uint32)
        ids_of_specials = {text: len(tokens) + i for i, text in enumerate(specials)}
        return Vocabulary(b"".join(tokens), offsets, ids), ids_of_specials

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
        with self._alone() as counting:
            limit, self.memory_limit = self.memory_limit, None  # it is for counting
            try:
                counting.update(b"", True)
            finally:
                self.memory_limit = limit
            data, sizes, counts, _ = counting.pieces(in_order=tie == "first")
        return merge_pairs(
            data,
            sizes,
            counts,
            vocab_size,
            min_frequency=min_frequency,
            tie=tie,
            progress=progress,
        )

    # State

    def save_counts(self, path: str | os.PathLike[str]) -> None:
        """Write what was counted, whole or not at all; `load_counts` goes on from there."""
        with self._alone() as counting:
            save_counts(
                path, SavedCounts(self.pattern, self.errors, counting.getstate(), self.notes)
            )

    @classmethod
    def load_counts(cls, path: str | os.PathLike[str], **settings: Any) -> Self:
        """Trainer: what `save_counts` wrote. settings: as for Trainer, but pattern and errors.

        Raises StateError for another file or a damaged one. Nothing is unpickled.
        """
        saved = read_counts(path)
        trainer = cls(saved.pattern, errors=saved.errors, **settings)
        try:
            trainer._counting.setstate(saved.state)
        except (MemoryLimitExceeded, MemoryError):
            raise
        except Exception as error:  # as in `read_counts`
            raise damaged(path, error) from error
        trainer.notes = saved.notes
        return trainer

    def __getstate__(self) -> object:
        with self._alone() as counting:
            settings = {
                "errors": self.errors,
                "num_threads": counting.num_threads,
                "memory_limit": self.memory_limit,
                "prune_singletons": counting.prune_singletons,
            }
            pattern = self.pattern if self.pattern.is_composed else self.pattern.source
            return pattern, settings, copy.deepcopy(self.notes), counting.getstate()

    def __setstate__(self, value: Any) -> None:
        pattern, settings, notes, state = value
        if isinstance(pattern, str):  # as a pattern, never as a name
            pattern = _compiled(pattern)
        self.__init__(pattern, **settings)  # type: ignore[misc]
        self.notes = notes
        limit, self.memory_limit = self.memory_limit, None  # what it held, it may hold again
        self._counting.setstate(state)
        self.memory_limit = limit

    def __repr__(self) -> str:
        return f"<Trainer: {self.n_pieces} different pieces in {self.bytes_in} bytes>"


@functools.lru_cache(maxsize=16)
def _compiled(source: str) -> Pattern:
    return Pattern.compile(source)
