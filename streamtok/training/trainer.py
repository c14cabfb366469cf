"""Trainer: an `Encoding` from a stream of text. What it counts and merges is below it."""

from __future__ import annotations

from collections.abc import Sequence

from ..encoding import Encoding
from ..patterns.named import PATTERNS
from .merging import Progress
from .vocabulary_trainer import Tie, VocabularyTrainer

__all__ = ["PATTERNS", "Trainer"]


class Trainer(VocabularyTrainer):
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
        have more than 65 535 bytes, and what `progress` raises.
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
