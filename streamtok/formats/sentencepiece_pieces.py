"""The model unigram of SentencePiece's `.model`.

It takes the whole text. Here a "▁" of a piece is a space, as in `sentencepiece.py`; where a space
is unknown it becomes the bytes of "▁" (`_core/models`). User-defined symbols are pieces like any,
with a score that mostly makes them win, whatever the file says. All is as in
sentencepiece 0.2.2 and later: before, that score was another, and so were very long sums.
(github.com/google/sentencepiece, Apache-2.0)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engines.rules import MARK
from ..errors import VocabularyError
from ..vocabulary.pieces import Pieces
from ..vocabulary.table import Vocabulary

__all__ = ["Rows", "unigram_vocabulary"]

_UNKNOWN_PENALTY = np.float32(10)
_BYTE_OF_SYMBOL = 0.1  # of a user-defined symbol, for each byte but one


class Rows(NamedTuple):
    """The pieces by type, with their ids. A "▁" is a space in all of them."""

    normal: dict[str, tuple[float, int]]  # with the score
    symbols: dict[str, int]  # user-defined
    unused: dict[str, int]
    special: dict[str, int]  # control symbols and what is unknown
    unknown_ids: list[int]
    byte_ids: dict[int, int]  # all or none

    def unknown(self, source: str) -> int:
        """The id of unknown characters. Raises VocabularyError if not one piece is for them."""
        if len(self.unknown_ids) != 1:
            raise VocabularyError(
                f"{source}: expected one piece for unknown characters, found "
                f"{len(self.unknown_ids)}"
            )
        return self.unknown_ids[0]


def unigram_vocabulary(count: int, rows: Rows, source: str) -> Vocabulary:
    """The vocabulary of a file with `count` pieces. Raises VocabularyError."""
    unknown = rows.unknown(source)
    if not rows.normal:
        raise VocabularyError(f"{source}: a model without normal pieces is not supported")
    ids = {text: id for text, (_, id) in rows.normal.items()} | rows.symbols
    byte_ids = [rows.byte_ids[byte] for byte in range(256)] if rows.byte_ids else None
    found = Pieces.of_ids(
        "SentencePiece unigram",
        ids,
        unknown,
        scores=_scores(rows, count),
        byte_ids=None if byte_ids is None else np.array(byte_ids, np.uint32),
    )
    decoded = {id: text.encode() for text, (_, id) in rows.normal.items()}
    decoded |= {id: text.encode() for text, id in (rows.symbols | rows.unused).items()}
    decoded |= {id: bytes([byte]) for byte, id in rows.byte_ids.items()}
    return Vocabulary.of_model(found, decoded)


def _scores(rows: Rows, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """By id: those of the file, which are float32; that of `<unk>` is of an unknown character."""
    given = np.array([score for score, _ in rows.normal.values()], np.float32)
    scores = np.zeros(count, np.float64)
    scores[[id for _, id in rows.normal.values()]] = given
    for text, id in rows.symbols.items():
        size = len(text.replace(" ", MARK).encode())
        scores[id] = np.float32(size * _BYTE_OF_SYMBOL - _BYTE_OF_SYMBOL)
    scores[rows.unknown_ids[0]] = given.min() - _UNKNOWN_PENALTY
    return scores
