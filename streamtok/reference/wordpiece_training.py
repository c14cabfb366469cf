"""WordPiece training as in tokenizers 0.23, slow and obvious.

This is BPE training (`bpe_training.py`) with a different spelling: a word starts as its characters,
all but the first with a prefix, and a merge joins the left part and the right part without its
prefix. The pieces are the vocabulary.

In tokenizers, two things depend on hash tables: the order in which characters with a prefix get
their ids, and which of equally frequent characters are kept. Here, both are arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .bpe_training import next_merges

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

    words: their counts. alphabet: the characters that are pieces. inside: the characters that
    occur after the first of a word, in the order of their ids.

    >>> train_word_pieces({"low": 2, "lot": 1}, 9, ["[UNK]"], "lotw", "owt")
    ['[UNK]', 'l', 'o', 't', 'w', '##o', '##w', '##t', 'lo']
    """
    pieces = list(dict.fromkeys([*special_tokens, *sorted(alphabet)]))
    known = set(pieces)
    pieces = list(dict.fromkeys([*pieces, *(prefix + character for character in inside)]))
    rows = [
        [pieces.index(prefix + c if at else c) for at, c in enumerate(word) if c in known]
        for word, often in words.items()
        for _ in range(often)
    ]

    def join(left: str, right: str) -> str:
        return left + right.removeprefix(prefix)

    new_ids = range(len(pieces), vocab_size)
    merges = next_merges(
        rows, dict(enumerate(pieces)), new_ids, min_frequency=min_frequency, join=join
    )
    return pieces + [join(*pair) for pair in merges]
