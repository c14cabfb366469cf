"""WordPiece training as tokenizers 0.23 has it, slow and obvious.

It is that of BPE (`tokenizers/src/models/bpe/trainer.rs`) with another spelling: a word begins as
its characters, of which all but the first have a prefix. Again and again, the most frequent pair of
neighbours, of equally frequent ones the one with the smallest ids, becomes a piece: the left part,
and the right one without its prefix. The pieces are the vocabulary.

Two things come out of hash tables there, and are arguments here: the order in which characters with
a prefix get their ids, and which of equally frequent characters are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from .bpe_training import replace_pair

__all__ = ["train_word_pieces"]


def train_word_pieces(
    words: Mapping[str, int],
    vocab_size: int,
    special_tokens: Sequence[str],
    alphabet: Iterable[str],
    inside: Sequence[str],
    min_frequency: int = 0,
    prefix: str = "##",
) -> list[str]:
    """The pieces, in order of their ids.

    words: how often each occurs. alphabet: the characters that are pieces. inside: those of them
    that are within words, in the order of their ids.

    >>> train_word_pieces({"low": 2, "lot": 1}, 9, ["[UNK]"], "lotw", "owt")
    ['[UNK]', 'l', 'o', 't', 'w', '##o', '##w', '##t', 'lo']
    """
    pieces = list(dict.fromkeys([*special_tokens, *sorted(alphabet)]))
    known = set(pieces)
    pieces = list(dict.fromkeys([*pieces, *(prefix + character for character in inside)]))
    rows = [
        [pieces.index(prefix + c if at else c) for at, c in enumerate(word) if c in known]
        for word in words
    ]
    while len(pieces) < vocab_size:
        counts: Counter[tuple[int, int]] = Counter()
        for ids, often in zip(rows, words.values(), strict=True):
            for pair in pairwise(ids):
                counts[pair] += often
        most = max(counts.values(), default=0)
        if most < max(min_frequency, 1):
            break
        left, right = min(pair for pair, count in counts.items() if count == most)
        rows = [replace_pair(ids, (left, right), len(pieces)) for ids in rows]
        pieces.append(pieces[left] + pieces[right].removeprefix(prefix))
    return pieces
