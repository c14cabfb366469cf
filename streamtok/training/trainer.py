"""Trainer: an `Encoding` from a stream of text.

Two steps. Text, in chunks of any size, becomes counted pre-tokens (`counting.py`); memory grows
only with the number of *different* pre-tokens. Then their pairs of neighbours are merged in the
order of their counts (`merging.py`). `reference/bpe_training.py` says what comes out.

Counts have state that can be merged, pickled and saved; merging has none that is worth it, so that
an interrupted `train` can just be called again.
"""

from __future__ import annotations

import copy
import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import OneCall, check_policy, one_call
from ..encoding import Encoding
from ..parallel.threads import check_threads, usable_cores
from ..patterns.named import PATTERNS
from ..patterns.pattern import Pattern
from ..vocabulary.table import Vocabulary
from .counting import BLOCK, Counting
from .merging import (
    Progress,
    Tie,
    check_apart,
    check_merging,
    check_specials,
    merge_pairs,
    tokens_of,
)
from .saved_counts import SavedCounts, damaged, read_counts, save_counts
from .word_pieces import check_word_pieces, word_pieces

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._types import Text
    from ..normalizers import Normalizer


class Trainer(OneCall):
    """Trains a BPE vocabulary: counts pre-tokens, then merges their most frequent pairs.

    >>> trainer = Trainer("gpt2")
    >>> trainer.update("low low lo")
    >>> trainer.update("w", final=True)
    >>> trainer.train(258).encode("low")
    [257]

    The law: the counts do not depend on how a text is cut into chunks. A chunk is str or
    bytes-like; bytes may be cut inside a character. A call that raises leaves the trainer as it
    was, unless its documentation says otherwise. A call during another call, from another thread or
    from an iterator that is being read, raises StreamInUseError. One call may use several threads
    itself: see `num_threads`.
    """

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
        "replace" does what `bytes.decode` does.
        "surrogateescape" counts the bytes as they are.
        num_threads: threads that count large texts. Default: the cores this process may use.

        Memory grows with the number of different pre-tokens, which `nbytes` tells.

        Raises PatternError for an invalid pattern, UnsupportedPatternError for one that no DFA can
        match, and ValueError for other arguments.
        """
        check_policy(errors)
        if not isinstance(pattern, Pattern):
            pattern = _compiled(PATTERNS.get(pattern, pattern))
        if num_threads is None:
            num_threads = usable_cores()
        num_threads = check_threads(num_threads)
        self._pattern = pattern
        self._counting = Counting(pattern, errors, num_threads)
        self.notes: dict[str, Any] = {}  # the caller's own JSON; saved with the counts

    # Counting

    @one_call
    def update(self, chunk: Text, final: bool = False) -> None:
        """Count the pre-tokens of the next chunk of the text; `final`: the text ends with it.

        Raises UnicodeDecodeError, with the offset in all bytes taken in, except with "replace".
        MemoryError and KeyboardInterrupt may come when a part of `chunk` is counted: `bytes_in`
        tells how much, and never ends inside a character. With "replace", that is a part of the
        repaired text. Costs O(len(chunk)).
        """
        self._counting.update(chunk, final)

    def end_document(self) -> None:
        """End the text: no pre-token continues in the next chunk. Raises as `update`."""
        self.update(b"", final=True)

    def update_documents(self, texts: Iterable[Text]) -> None:
        """Count independent texts. Ends the open text first.

        Raises as `update`, and what `texts` raises. The texts before the one that raised are then
        counted, later ones are not. After MemoryError, `bytes_in` tells how much of the text that
        raised is counted.
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

        progress: called with (bytes done, bytes in all) after each block. Raises OSError, and as
        `update`. The text then stays open, and `bytes_in` tells how much of it is counted.
        """
        counting = self._counting
        with open(os.fspath(path), "rb", buffering=0) as file:
            counting.update(b"", True)
            total = os.fstat(file.fileno()).st_size
            done = 0
            # An array: threads share it, and a memoryview counts its users without a lock.
            buffer: Any = np.empty(BLOCK, np.uint8)
            while read := file.readinto(buffer):
                counting.update(buffer[:read], False)
                done += read
                if progress:
                    progress(done, max(done, total))
            counting.update(b"", True)

    def merge(self, other: Trainer) -> None:
        """Add the counts of `other`, as if its texts had come next. Ends the open text first.

        Raises ValueError if `other` has another pattern, another `errors` or an open text;
        UnicodeDecodeError if the text here ends inside a character; MemoryError. Nothing
        changes then. `other` never changes.
        """
        if not isinstance(other, Trainer):
            raise TypeError(f"other must be a Trainer, not {type(other).__name__}")
        if other is self:
            raise ValueError("a trainer cannot be merged with itself")
        other._merge_into(self)

    @one_call
    def _merge_into(self, whole: Trainer) -> None:
        whole._merge_counts(self._counting, self.pattern)

    @one_call
    def _merge_counts(self, more: Counting, pattern: Pattern) -> None:
        if (more.errors, pattern.source, pattern.is_composed) != (
            self.errors,
            self.pattern.source,
            self.pattern.is_composed,
        ):
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
        """Bytes of UTF-8 taken in so far (with "replace": of the repaired text)."""
        return self._counting.counter.bytes_in

    @property
    def pending(self) -> int:
        """Bytes that were given and are not counted yet.

        These are the bytes of the open pre-token. With "replace", bytes that the next chunk decides
        come on top, such as the first bytes of a character.
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
        """The count of each pre-token, in the order of their first occurrence."""
        data, sizes, counts, _ = self._counting.pretokens(in_order=True)
        bounds = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
        blob = data.tobytes()
        pretokens = (blob[a:b] for a, b in itertools.pairwise(bounds))
        return dict(zip(pretokens, counts.tolist(), strict=True))

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
        """Make an encoding. Ends the open text; the counts stay as they are.

        Its ids: 0 … 255 are the bytes, then come the merges in order, then the special tokens.

        vocab_size: the number of all ids. The result is smaller if no pairs are left.
        min_frequency: pairs that occur less often are not merged.
        tie: which of the most frequent pairs is merged first. "raw", as rustbpe: the one with the
        smallest (left id, right id). "hf": the same, with bytes in the order of Hugging Face's
        ByteLevel alphabet. "first", as minbpe: the one that comes first in the text.
        name: of the encoding. progress: called with (merges done, merges requested).

        Raises ValueError and TypeError for bad arguments, and UnicodeDecodeError if the open text
        ends inside a character; both come before any work. Raises VocabularyError if a token would
        have more than 65 535 bytes or be a special token's text, and what `progress` raises.
        """
        vocabulary, specials = self.train_vocabulary(
            vocab_size,
            special_tokens=special_tokens,
            min_frequency=min_frequency,
            tie=tie,
            progress=progress,
        )
        return Encoding(
            name, pat_str=self.pattern, mergeable_ranks=vocabulary, special_tokens=specials
        )

    def train_wordpiece(
        self,
        vocab_size: int = 30_000,
        *,
        special_tokens: Sequence[str] = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        unk_token: str = "[UNK]",
        min_frequency: int = 0,
        limit_alphabet: int | None = None,
        initial_alphabet: Iterable[str] = (),
        prefix: str = "##",
        normalizer: Normalizer | None = None,
        name: str = "trained",
        progress: Progress | None = None,
    ) -> Encoding:
        """Make an encoding with a WordPiece model, as tokenizers' WordPieceTrainer does.

        >>> trainer = Trainer("bert")
        >>> trainer.update("low lower lowest", final=True)
        >>> enc = trainer.train_wordpiece(20)
        >>> enc.decode(enc.encode("lower low"))
        'lower low'

        Ends the open text; the counts stay as they are. Its ids: the special tokens, the characters
        of the text, those within words with the prefix, and the merges. Characters are in the order
        of their code points; in tokenizers those within words are in an order that changes from run
        to run, and with it which of equally frequent pairs comes first.

        vocab_size: the number of all ids; there are fewer if no pairs are left. min_frequency:
        pairs that occur less often are not merged. limit_alphabet: only the so many most frequent
        characters are pieces, as text in Chinese or Japanese may need. initial_alphabet:
        characters that always are. unk_token: for words that have no pieces; one of the special
        tokens. normalizer: what the encoding does to a text; count texts that it has changed.
        name, progress: as for `train`.

        Raises ValueError and TypeError for bad arguments, or if `errors` is "surrogateescape", and
        UnicodeDecodeError as `train`. Raises VocabularyError if the special tokens and characters
        alone are more than vocab_size, or if two different merges make one piece, as they may where
        the text has the prefix, and what `progress` raises.
        """
        from ..formats.huggingface_pieces import word_piece_encoding  # slow to import

        initial_alphabet = tuple(initial_alphabet)
        check_word_pieces(
            vocab_size, special_tokens, unk_token, min_frequency, limit_alphabet, initial_alphabet,
            prefix,
        )  # fmt: skip
        if self.errors == "surrogateescape":
            raise ValueError("WordPiece is trained on text, not with errors='surrogateescape'")
        ids = word_pieces(
            *self._ended(in_order=False),
            vocab_size,
            special_tokens=special_tokens,
            min_frequency=min_frequency,
            limit_alphabet=limit_alphabet,
            initial_alphabet=initial_alphabet,
            prefix=prefix,
            progress=progress,
        )
        specials = {text: ids[text] for text in special_tokens}
        return word_piece_encoding(
            name, self.pattern, ids, specials, ids[unk_token], prefix, normalizer
        )

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
        check_apart(specials, [bytes([byte]) for byte in range(256)])
        lefts, rights = self._merged(vocab_size - len(specials), min_frequency, tie, progress)
        tokens = tokens_of(lefts, rights)
        check_apart(specials, tokens)
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
        """The merges, in order. Arguments and exceptions as for `train`."""
        lefts, rights = self._merged(vocab_size, min_frequency, tie, progress)
        tokens = tokens_of(lefts, rights)
        return [(tokens[a], tokens[b]) for a, b in zip(lefts, rights, strict=True)]

    def _merged(
        self, vocab_size: int, min_frequency: int, tie: str, progress: Progress | None
    ) -> tuple[list[int], list[int]]:
        check_merging(vocab_size, min_frequency, tie)
        return merge_pairs(
            *self._ended(in_order=tie == "first"),
            vocab_size,
            min_frequency=min_frequency,
            tie=tie,
            progress=progress,
        )

    @one_call
    def _ended(self, in_order: bool) -> tuple[Any, Any, Any]:
        """(data, sizes, counts) of `Counting.pretokens`, when the open text has ended."""
        self._counting.end()
        return self._counting.pretokens(in_order)[:3]

    # State

    @one_call
    def save_counts(self, path: str | os.PathLike[str]) -> None:
        """Save the counts for `load_counts`. The file appears when it is complete.

        Raises OSError, and TypeError if `notes` are not JSON.
        """
        state = self._counting.getstate()
        save_counts(path, SavedCounts(self.pattern, self.errors, state, self.notes))

    @classmethod
    def load_counts(cls, path: str | os.PathLike[str], **settings: Any) -> Self:
        """A trainer with the counts that `save_counts` wrote.

        settings: the arguments of Trainer, except pattern and errors. Raises OSError, and
        StateError for a damaged file or one of another kind. Nothing is unpickled.
        """
        saved = read_counts(path)
        trainer = cls(saved.pattern, errors=saved.errors, **settings)
        try:
            trainer._counting.setstate(saved.state)
        except MemoryError:
            raise
        except Exception as error:  # as in `read_counts`
            raise damaged(path, error) from error
        trainer.notes = saved.notes
        return trainer

    @one_call
    def __getstate__(self) -> object:
        counting = self._counting
        settings = {"errors": self.errors, "num_threads": counting.num_threads}
        return self.pattern, settings, copy.deepcopy(self.notes), counting.getstate()

    def __setstate__(self, value: Any) -> None:
        pattern, settings, notes, state = value
        self.__init__(pattern, **settings)  # type: ignore[misc]
        self.notes = notes
        self._counting.setstate(state)

    def __repr__(self) -> str:
        return f"<Trainer: {self.n_pieces} different pre-tokens in {self.bytes_in} bytes>"


@functools.lru_cache(maxsize=16)
def _compiled(source: str) -> Pattern:
    return Pattern.compile(source)
