"""Trains the vocabulary of a WordPiece model on counted pre-tokens, as Hugging Face does.

The WordPieceTrainer of tokenizers merges the most frequent pair of pieces, as its BpeTrainer does.
A word is at first its characters, all but the first one with the prefix. A merge drops the prefix
of its right part. `reference/wordpiece_training.py` defines the result.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._core.train import MergeLoop
from ..errors import VocabularyError
from .merging import Progress, check_specials, run_loop

if TYPE_CHECKING:
    import numpy.typing as npt


def check_word_pieces(
    vocab_size: int,
    special_tokens: Sequence[str],
    unk_token: str,
    min_frequency: int,
    limit_alphabet: int | None,
    prefix: str,
) -> None:
    """Raise TypeError or ValueError for bad arguments of `Trainer.train_wordpiece`."""
    check_specials(special_tokens)
    if unk_token not in special_tokens:
        raise ValueError(f"the unk_token {unk_token!r} is not one of the special tokens")
    numbers = {"vocab_size": vocab_size, "min_frequency": min_frequency}
    if limit_alphabet is not None:
        numbers["limit_alphabet"] = limit_alphabet
    for name, number in numbers.items():
        if not 0 <= operator.index(number) <= 0x7FFFFFFF:
            raise ValueError(f"{name} must be in 0 … 2147483647, not {number}")
    try:
        prefix.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"the prefix is not valid Unicode: {error}") from None


def word_pieces(
    data: npt.NDArray[np.uint8],
    sizes: npt.NDArray[np.uint32],
    counts: npt.NDArray[np.uint64],
    vocab_size: int,
    *,
    special_tokens: Sequence[str],
    min_frequency: int,
    limit_alphabet: int | None,
    prefix: str,
    progress: Progress | None,
) -> dict[str, int]:
    """The ids of special tokens, characters, characters within words and merges, in order.

    data, sizes, counts: from `Counting.pretokens`, of valid UTF-8. Raises VocabularyError if two
    different merges make the same piece, or if the characters do not fit into `vocab_size`.
    """
    points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
    lengths = _in_characters(data, sizes)
    words = np.repeat(np.arange(len(lengths)), lengths)  # the word of each character
    distinct, numbers = np.unique(points, return_inverse=True)
    frequency = np.zeros(len(distinct), np.uint64)
    np.add.at(frequency, numbers, counts[words])
    ids = {text: id for id, text in enumerate(special_tokens)}
    singles = [chr(point) for point in distinct.tolist()]
    # The most frequent characters are pieces. Hugging Face breaks ties arbitrarily.
    by_count = sorted(zip((-frequency.astype(np.int64)).tolist(), singles, strict=True))
    for character in sorted([single for _, single in by_count[:limit_alphabet]]):
        ids.setdefault(character, len(ids))
    is_first = np.diff(words, prepend=-1) != 0
    first_ids = np.array([ids.get(single, -1) for single in singles], np.int64)
    inner_ids = np.full(len(distinct), -1, np.int64)
    for at in np.flatnonzero(np.bincount(numbers[~is_first])).tolist():
        if singles[at] in ids:
            inner_ids[at] = ids.setdefault(prefix + singles[at], len(ids))
    if len(ids) > vocab_size:
        n_special = len(special_tokens)
        raise VocabularyError(
            f"vocab_size {vocab_size} is too small: {n_special} special tokens and the characters "
            f"of the text, by themselves and with {prefix!r}, are {len(ids)} pieces. Give at least "
            f"{len(ids)}, or limit_alphabet (--limit-alphabet), to keep the most frequent "
            f"characters only: {max(0, vocab_size - n_special) // 2} of them fit"
        )
    symbols = np.where(is_first, first_ids[numbers], inner_ids[numbers])
    is_kept = symbols >= 0
    loop = MergeLoop(
        symbols[is_kept].astype(np.uint32),
        np.bincount(words[is_kept], minlength=len(sizes)).astype(np.uint32),
        counts,
        np.arange(len(ids), dtype=np.uint32),
        max(0, vocab_size - len(ids)),
        min_frequency,
        False,
    )
    texts = list(ids)
    lefts, rights = run_loop(loop, progress)
    for left, right in zip(lefts.tolist(), rights.tolist(), strict=True):
        text = texts[left] + texts[right].removeprefix(prefix)
        if text in ids:
            raise VocabularyError(
                f"merging {texts[left]!r} and {texts[right]!r} makes the piece {text!r}, which "
                "exists already: use another prefix, special tokens that are not in the text, or "
                "a pattern that cuts them"
            )
        ids[text] = len(texts)
        texts.append(text)
    return ids


def _in_characters(
    data: npt.NDArray[np.uint8], sizes: npt.NDArray[np.uint32]
) -> npt.NDArray[np.int64]:
    """The sizes of the pre-tokens in characters. sizes: in bytes."""
    begun = np.zeros(len(data) + 1, np.int64)
    np.cumsum((data & 0xC0) != 0x80, out=begun[1:])
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.diff(begun[ends], prepend=0)
