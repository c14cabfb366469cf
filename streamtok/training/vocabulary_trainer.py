"""Trains a `Vocabulary`, without making an `Encoding`.

There are two steps. First, the pre-tokens of text in chunks of any size are counted
(`counting.py`); memory grows only with the number of *different* pre-tokens. Then their most
frequent pairs of neighbours are merged (`merging.py`). `reference/bpe_training.py` defines the
result.

Counts can be merged, pickled and saved. Merging keeps no state: an interrupted `train` can just be
called again.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import OneCall, check_policy, one_call
from ..patterns.named import PATTERNS
from ..patterns.pattern import Pattern
from ..threads import check_threads, usable_cores
from ..vocabulary.arrays import offsets_of
from ..vocabulary.table import Vocabulary
from .counting import BLOCK, Counting
from .merging import (
    SINGLE_BYTES,
    Progress,
    Tie,
    check_apart,
    check_merging,
    check_specials,
    merge_pairs,
    tokens_of,
)
from .saved_counts import damaged, read_counts, save_counts

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._types import Text


class VocabularyTrainer(OneCall):
    """Counts the pre-tokens of a stream of text, and merges their pairs; see `Trainer`."""

    _kind = "trainer"

    def __init__(
        self,
        pattern: str | Pattern = "cl100k",
        *,
        errors: str = "strict",
        num_threads: int | None = None,
    ):
        """Make an empty trainer.

        pattern: a pre-tokenization pattern, or a name in `PATTERNS` (gpt2, cl100k, o200k, llama3,
        nanochat, …).
        errors: what to do with bytes that are not UTF-8. "strict" raises UnicodeDecodeError.
        "replace" replaces them with U+FFFD, as `bytes.decode` does.
        "surrogateescape" counts the bytes as they are.
        num_threads: threads that count large texts; None for all cores this process may use.

        Memory (see `nbytes`) grows with the number of different pre-tokens.

        Raises PatternError for an invalid pattern, UnsupportedPatternError for one that no DFA can
        match, and ValueError for other bad arguments.
        """
        check_policy(errors)
        if not isinstance(pattern, Pattern):
            pattern = _compiled(PATTERNS.get(pattern, pattern))
        if num_threads is None:
            num_threads = usable_cores()
        num_threads = check_threads(num_threads)
        self._pattern = pattern
        self._counting = Counting(pattern, errors, num_threads)

    # Counting

    @one_call
    def update(self, chunk: Text, final: bool = False) -> None:
        """Count the pre-tokens of the next chunk of the text. final: the text ends with the chunk.

        Except with "replace", raises UnicodeDecodeError, whose offsets continue over all texts.
        After a MemoryError or KeyboardInterrupt, a part of `chunk` (with "replace": of the repaired
        text) may be counted; `bytes_in` tells how much, and is never inside a character. Costs
        O(len(chunk)).
        """
        self._counting.update(chunk, final)

    def end_document(self) -> None:
        """End the text: no pre-token continues in the next chunk. Raises the errors of `update`."""
        self.update(b"", final=True)

    def update_documents(self, texts: Iterable[Text]) -> None:
        """Count independent texts. Ends the open text first.

        Raises the errors of `update`; exceptions of `texts` pass through. The texts before the one
        that raised are then counted, and later ones are not. After MemoryError, `bytes_in` tells
        how much of the text that raised is counted.
        """
        if isinstance(texts, (str, bytes, bytearray, memoryview)):
            raise TypeError("texts must be an iterable of texts, not one text: use update(text)")
        self._update_documents(iter(texts))

    @one_call
    def _update_documents(self, texts: Iterator[Text]) -> None:
        self._counting.update(b"", True)
        self._counting.update_documents(texts)

    @one_call
    def update_file(
        self, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """Count a file as one text, in blocks of 32 MiB. Ends the open text first.

        progress: called with (bytes done, total bytes) after each block. Raises OSError, and as
        `update`. After an exception, the text stays open, and `bytes_in` tells how much of it is
        counted.
        """
        counting = self._counting
        with open(os.fspath(path), "rb", buffering=0) as file:
            counting.update(b"", True)
            total = os.fstat(file.fileno()).st_size
            done = 0
            # An array, because threads share it, and a memoryview counts its users without a lock.
            buffer: Any = np.empty(BLOCK, np.uint8)
            while read := file.readinto(buffer):
                counting.update(buffer[:read], False)
                done += read
                if progress:
                    progress(done, max(done, total))
            counting.update(b"", True)

    def merge(self, other: VocabularyTrainer) -> None:
        """Add the counts of `other`, as if its texts had come next. Ends the open text first.

        Raises ValueError if `other` has a different pattern, a different `errors` or an open text,
        UnicodeDecodeError if the open text here ends inside a character, and MemoryError. An
        exception changes nothing. `other` never changes.
        """
        if not isinstance(other, VocabularyTrainer):
            raise TypeError(f"other must be a Trainer, not {type(other).__name__}")
        if other is self:
            raise ValueError("a trainer cannot be merged with itself")
        other._merge_into(self)

    @one_call
    def _merge_into(self, whole: VocabularyTrainer) -> None:
        whole._merge_counts(self._counting, self.pattern)

    @one_call
    def _merge_counts(self, more: Counting, pattern: Pattern) -> None:
        if more.errors != self.errors or not is_same(self.pattern, pattern):
            raise ValueError("the other trainer has another pattern, or another errors setting")
        if more.pending:
            raise ValueError(
                f"the other trainer has an open text with {more.pending} bytes that are not "
                "counted yet: call its end_document()"
            )
        self._counting.merge(more)

    @property
    def pattern(self) -> Pattern:
        """The pre-tokenization pattern."""
        return self._pattern

    @property
    def errors(self) -> str:
        """The policy for bytes that are not UTF-8."""
        return self._counting.errors

    @property
    def bytes_in(self) -> int:
        """Bytes of UTF-8 so far, of all texts (with "replace": of the repaired texts)."""
        return self._counting.counter.bytes_in

    @property
    def pending(self) -> int:
        """Bytes of the text that are not counted yet.

        These are the bytes of the open pre-token and, with "replace", those of an unfinished
        character at the end of the last chunk.
        """
        return self._counting.pending

    @property
    def n_pieces(self) -> int:
        """Number of different pre-tokens."""
        return len(self._counting.counter.table)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the counts take."""
        return self._counting.counter.nbytes

    @one_call
    def piece_counts(self) -> dict[bytes, int]:
        """The count of each pre-token, in order of first occurrence."""
        data, sizes, counts, _ = self._counting.pretokens(in_order=True)
        bounds = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
        blob = data.tobytes()
        pretokens = (blob[a:b] for a, b in itertools.pairwise(bounds))
        return dict(zip(pretokens, counts.tolist(), strict=True))

    # Merging

    def train_vocabulary(
        self,
        vocab_size: int,
        *,
        special_tokens: Sequence[str] = (),
        **settings: Any,
    ) -> tuple[Vocabulary, dict[str, int]]:
        """The vocabulary and the ids of the special tokens; arguments as for `Trainer.train`."""
        specials = check_specials(special_tokens)
        check_apart(specials, SINGLE_BYTES)
        lefts, rights = self._merged(vocab_size - len(specials), **settings)
        tokens = tokens_of(lefts, rights)
        check_apart(specials, tokens)
        offsets = offsets_of(np.fromiter(map(len, tokens), np.int64, len(tokens)))
        ids = np.arange(len(tokens), dtype=np.uint32)
        ids_of_specials = {text: len(tokens) + i for i, text in enumerate(specials)}
        return Vocabulary(b"".join(tokens), offsets, ids), ids_of_specials

    def merges(self, vocab_size: int, **settings: Any) -> list[tuple[bytes, bytes]]:
        """The merges, in order. `train` describes the arguments and the exceptions.

        settings: min_frequency, tie, max_token_length and progress.
        """
        lefts, rights = self._merged(vocab_size, **settings)
        tokens = tokens_of(lefts, rights)
        return [(tokens[a], tokens[b]) for a, b in zip(lefts, rights, strict=True)]

    def _merged(
        self,
        vocab_size: int,
        *,
        min_frequency: int = 1,
        tie: Tie = "raw",
        max_token_length: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[list[int], list[int]]:
        check_merging(vocab_size, min_frequency, tie, max_token_length)
        return merge_pairs(
            *self._ended(in_order=tie == "first"),
            vocab_size,
            min_frequency=min_frequency,
            tie=tie,
            max_token_length=max_token_length,
            progress=progress,
        )

    @one_call
    def _ended(self, in_order: bool) -> tuple[Any, Any, Any]:
        """End the open text; return (data, sizes, counts) of `Counting.pretokens`."""
        self._counting.end()
        return self._counting.pretokens(in_order)[:3]

    # State

    @one_call
    def save_counts(self, path: str | os.PathLike[str]) -> None:
        """Save the counts for `load_counts`. The file appears only when it is complete.

        Raises OSError.
        """
        save_counts(path, self.pattern, self.errors, self._counting.getstate())

    @classmethod
    def load_counts(cls, path: str | os.PathLike[str], **settings: Any) -> Self:
        """A trainer with the counts that `save_counts` wrote.

        settings: the arguments of Trainer, except pattern and errors. Raises OSError, and
        StateError for a file that is damaged or does not hold saved counts. Nothing is unpickled.
        """
        saved = read_counts(path)
        try:
            pattern = saved.pattern
        except ValueError as error:
            raise damaged(path, error) from error
        trainer = cls(pattern, errors=saved.errors, **settings)
        try:
            trainer._counting.setstate((saved.place, saved.arrays))
        except (ValueError, TypeError) as error:
            raise damaged(path, error) from error
        return trainer

    @one_call
    def __getstate__(self) -> object:
        counting = self._counting
        settings = {"errors": self.errors, "num_threads": counting.num_threads}
        pattern = self.pattern if self.pattern.is_composed else self.pattern.source
        return pattern, settings, counting.getstate()

    def __setstate__(self, value: Any) -> None:
        pattern, settings, state = value
        if isinstance(pattern, str):  # always a pattern, never a name
            pattern = _compiled(pattern)
        self.__init__(pattern, **settings)  # type: ignore[misc]
        self._counting.setstate(state)

    def __repr__(self) -> str:
        return f"<Trainer: {self.n_pieces} different pre-tokens in {self.bytes_in} bytes>"


def is_same(pattern: Pattern, other: Pattern) -> bool:
    """Whether two patterns cut texts in the same way."""
    return (pattern.source, pattern.is_composed) == (other.source, other.is_composed)


@functools.lru_cache(maxsize=16)
def _compiled(source: str) -> Pattern:
    return Pattern.compile(source)
