"""Trainer: an `Encoding` from a stream of text. What it counts and merges is below it."""

from __future__ import annotations

from collections.abc import Sequence

from ..encoding import Encoding
from ..patterns.named import PATTERNS
from .merging import Progress
from .vocabulary_trainer import Tie, VocabularyTrainer

__all__ = ["PATTERNS", "Trainer"]


class Trainer(VocabularyTrainer):
    """Counts the pieces of a stream of text, and merges their most frequent pairs.

    >>> trainer = Trainer("gpt2")
    >>> trainer.update("low low lo")
    >>> trainer.update("w", final=True)
    >>> trainer.train(258).encode("low")
    [257]

    The law: however a text is cut into chunks, the counts are those of the whole. A chunk is str or
    bytes-like; bytes may be cut inside a character. A call that raises leaves the trainer as it
    was, but for those that say otherwise. One call at a time: a call during another one, in another
    thread or from an iterator that is being read, raises StreamInUseError (the call itself may use
    several threads, see `num_threads`).
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
        """Encoding: ids 0 … 255 are the bytes, then the merges in order, then the special tokens.

        vocab_size: of all of them together; smaller where no pair is left. min_frequency: pairs
        seen less often are not merged. tie: which of the most frequent pairs comes first: "raw",
        the smallest (left id, right id), as rustbpe; "hf", the same over the order of Hugging
        Face's ByteLevel alphabet; "first", the one that comes first in the text, as minbpe.
        progress: gets (merges done, merges wanted). An open text is ended before.

        Raises ValueError and TypeError for impossible arguments and UnicodeDecodeError where the
        open text ends inside a character, before anything else; VocabularyError where a token would
        have more than 65 535 bytes, and what `progress` raises. Counts stay as they are.
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
