"""Trainer: makes an `Encoding` from a stream of text. `VocabularyTrainer` counts and merges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import ARRAY
from .._core.train import MergeLoop
from ..encoding import Encoding, changed
from ..formats.merge_lists import from_rows
from ..vocabulary.arrays import offsets_of
from ..vocabulary.table import NO_ID, Vocabulary
from .merging import Progress, Tie, check_apart, check_merging, run_loop, tokens_of
from .vocabulary_trainer import VocabularyTrainer, is_same
from .word_pieces import check_word_pieces, word_pieces

if TYPE_CHECKING:
    from ..definition import Definition
    from ..normalizers import Normalizer


class Trainer(VocabularyTrainer):
    """Trains a BPE vocabulary: counts pre-tokens, then merges their most frequent pairs.

    >>> trainer = Trainer("gpt2")
    >>> trainer.update("low low lo")
    >>> trainer.update("w", final=True)
    >>> trainer.train(258).encode("low")
    [257]

    The counts do not depend on how a text is cut into chunks. A chunk is str or bytes-like; bytes
    may be cut inside a character. A call that raises leaves the trainer as it was, unless its
    documentation says otherwise. A call during another call, from another thread or from an
    iterator that is being read, raises StreamInUseError. One call may itself use several threads:
    see `num_threads`.
    """

    def train(
        self,
        vocab_size: int,
        *,
        special_tokens: Sequence[str] = (),
        min_frequency: int = 1,
        tie: Tie = "raw",
        max_token_length: int | None = None,
        name: str = "trained",
        progress: Progress | None = None,
    ) -> Encoding:
        """Make an encoding. Ends the open text; the counts stay as they are.

        The ids 0 … 255 are the bytes. The merges follow in order, and then the special tokens.

        vocab_size: the total number of ids; there are fewer if no pairs are left.
        min_frequency: pairs that occur less often are not merged.
        tie: which of equally frequent pairs is merged first. "raw", as in rustbpe: the pair with
        the smallest (left id, right id). "hf": the same, with bytes in the order of Hugging Face's
        ByteLevel alphabet. "first", as in minbpe: the pair that comes first in the text.
        max_token_length: as in Hugging Face's BpeTrainer, tokens of more than two bytes have fewer
        bytes than this.
        name: of the encoding. progress: called with (merges done, merges requested).

        Raises ValueError and TypeError for bad arguments, and UnicodeDecodeError if the open text
        ends inside a character, all before any work. Raises VocabularyError if a token would
        have more than 65 535 bytes or equal a special token. Exceptions of `progress` pass through.
        """
        vocabulary, specials = self.train_vocabulary(
            vocab_size,
            special_tokens=special_tokens,
            min_frequency=min_frequency,
            tie=tie,
            max_token_length=max_token_length,
            progress=progress,
        )
        return Encoding(
            name, pat_str=self.pattern, mergeable_ranks=vocabulary, special_tokens=specials
        )

    def extend(self, encoding: Encoding, vocab_size: int) -> Encoding:
        """Continue training `encoding` on the counted text; return an encoding with more merges.

        >>> trainer = Trainer("gpt2")
        >>> trainer.update("lower lower lowest", final=True)
        >>> old = trainer.train(258)
        >>> trainer.extend(old, 262).encode("lower") == trainer.train(262).encode("lower")
        True

        Ends the open text; the counts stay as they are. All old ids stay, including those of
        special tokens, and new ids follow the highest. The old merges come first; among new ones,
        the smallest (left id, right id) breaks ties. Only for byte-level BPE with the trainer's
        pattern. If the encoding has a normalizer, the counted texts must already be normalized.

        vocab_size: the result's `n_vocab`; it is smaller if no pairs are left. If a new merge makes
        an old token that encoding never produced, the token keeps its id.

        Raises ValueError for a different pattern or a `vocab_size` below the old one,
        VocabularyError for other models, and as `train` does.
        """
        definition = encoding.definition
        definition.check_byte_level("extended")
        if definition.pattern is None or not is_same(definition.pattern, self.pattern):
            raise ValueError(
                f"the trainer counts with another pattern than that of {encoding.name}: use "
                "Trainer(encoding.pattern)"
            )
        check_merging(vocab_size, 1, "raw")
        if vocab_size < encoding.n_vocab:
            raise ValueError(
                f"vocab_size must be at least {encoding.n_vocab}, the encoding's n_vocab: it is "
                f"{vocab_size}"
            )
        new_ids = range(encoding.n_vocab, vocab_size)
        vocabulary = _extended(definition, *self._ended(in_order=False), new_ids)
        return changed(encoding, mergeable_ranks=vocabulary)

    def train_wordpiece(
        self,
        vocab_size: int = 30_000,
        *,
        special_tokens: Sequence[str] = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        unk_token: str = "[UNK]",
        min_frequency: int = 0,
        limit_alphabet: int | None = None,
        prefix: str = "##",
        normalizer: Normalizer | None = None,
        name: str = "trained",
        progress: Progress | None = None,
    ) -> Encoding:
        """Make an encoding with a WordPiece model, as Hugging Face's WordPieceTrainer does.

        >>> trainer = Trainer("bert")
        >>> trainer.update("low lower lowest", final=True)
        >>> enc = trainer.train_wordpiece(20)
        >>> enc.decode(enc.encode("lower low"))
        'lower low'

        Ends the open text; the counts stay as they are. The ids are, in this order: special tokens,
        characters of the text, characters within words (with the prefix), and merges. Characters
        are in order of code point. In Hugging Face's trainer, the order of characters within words
        changes from run to run, and with it the choice among equally frequent pairs.

        vocab_size: the total number of ids; there are fewer if no pairs are left. min_frequency:
        pairs that occur less often are not merged. limit_alphabet: only this many characters, the
        most frequent ones, are pieces; text in Chinese or Japanese may need a limit. unk_token: one
        of the special tokens, for words that pieces cannot spell. normalizer: of the encoding; the
        counted texts must already be normalized. name, progress: as for `train`.

        Raises ValueError and TypeError for bad arguments, ValueError if `errors` is
        "surrogateescape", and UnicodeDecodeError as `train` does. Raises VocabularyError if the
        special tokens and characters alone are more than vocab_size, or if two different merges
        make the same piece, which may happen if the text contains the prefix. Exceptions of
        `progress` pass through.
        """
        from ..formats.huggingface_pieces import word_piece_encoding  # slow to import

        check_word_pieces(
            vocab_size, special_tokens, unk_token, min_frequency, limit_alphabet, prefix
        )
        if self.errors == "surrogateescape":
            raise ValueError("WordPiece is trained on text, not with errors='surrogateescape'")
        ids = word_pieces(
            *self._ended(in_order=False),
            vocab_size,
            special_tokens=special_tokens,
            min_frequency=min_frequency,
            limit_alphabet=limit_alphabet,
            prefix=prefix,
            progress=progress,
        )
        specials = {text: ids[text] for text in special_tokens}
        return word_piece_encoding(
            name, self.pattern, ids, specials, ids[unk_token], prefix, normalizer
        )


def _extended(
    definition: Definition, data: Any, sizes: Any, counts: Any, new_ids: range
) -> Vocabulary:
    """The vocabulary with a new merge for each of `new_ids`, or fewer if no pairs are left.

    data, sizes, counts: as for `merge_pairs`. The merge loop starts from the tokens of each
    pre-token instead of its bytes, so it makes the merges that training would make after the old
    ones. Symbols are numbered in order of id, which breaks ties.
    """
    vocabulary = definition.vocabulary
    order = np.argsort(vocabulary.ids)  # symbol to number of token
    ends = np.cumsum(sizes, dtype=np.int64)
    encoded = definition.encoder.encode_split(data.data, ends, ARRAY)
    symbols = np.searchsorted(vocabulary.ids[order], encoded).astype(np.uint32)
    bytes_so_far = np.cumsum(np.diff(vocabulary.offsets)[order][symbols], dtype=np.int64)
    n_symbols = np.diff(np.searchsorted(bytes_so_far, ends) + 1, prepend=0).astype(np.uint32)
    every = np.arange(len(order), dtype=np.uint32)
    loop = MergeLoop(symbols, n_symbols, counts, every, len(new_ids), 1, False)
    lefts, rights = run_loop(loop, None)
    old = vocabulary.to_list()
    first = [old[number] for number in order.tolist()]
    tokens = tokens_of(lefts.tolist(), rights.tolist(), first)
    check_apart(definition.specials.every, tokens[len(old) :])
    # New tokens get new ids, except those that were decode-only, which keep theirs.
    numbers = {token: number for number, token in enumerate(old)}
    ids = vocabulary.ids.tolist()
    unmade = {token: id for id, token in vocabulary.decode_only.items()}
    fresh = iter(new_ids)
    for token in tokens[len(old) :]:
        if token not in numbers:
            numbers[token] = len(ids)
            ids.append(unmade[token] if token in unmade else next(fresh))
    known = {*ids}
    old_lefts, old_rights = definition.table.parts()  # by token
    made = np.flatnonzero(old_lefts != NO_ID)
    number_of = np.array([numbers[token] for token in tokens])  # by symbol
    more = number_of[np.stack([lefts, rights, np.arange(len(old), len(tokens))], axis=1)]
    rows = np.concatenate([np.stack([old_lefts[made], old_rights[made], made], axis=1), more])
    return from_rows(
        b"".join(numbers),
        offsets_of(np.fromiter(map(len, numbers), np.int64, len(numbers))),
        np.array(ids),
        rows.astype(np.uint32),
        ignore_merges=True,
        decode_only={id: t for id, t in vocabulary.decode_only.items() if id not in known},
    )
