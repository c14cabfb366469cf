"""WordPiece and WordLevel as in `tokenizers`, slow and obvious.

A model is the field `model` of a `tokenizer.json`. A pre-token becomes pieces (id, start, end): an
id and its span in the pre-token, in characters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Piece", "word_level", "word_piece"]

Piece = tuple[int, int, int]


def word_piece(model: Mapping[str, Any], pretoken: str) -> list[Piece]:
    """Repeatedly take the longest piece that the rest begins with; if none, the word is unknown.

    >>> model = {"vocab": {"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3}, "unk_token": "[UNK]",
    ...          "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    >>> word_piece(model, "unaffable"), word_piece(model, "unx")
    ([(1, 0, 2), (2, 2, 5), (3, 5, 9)], [(0, 0, 3)])
    """
    vocab, prefix = model["vocab"], model["continuing_subword_prefix"]
    unknown = [(vocab[model["unk_token"]], 0, len(pretoken))]
    if len(pretoken) > model["max_input_chars_per_word"]:
        return unknown
    pieces: list[Piece] = []
    start = 0
    while start < len(pretoken):
        for end in range(len(pretoken), start, -1):
            text = (prefix if start else "") + pretoken[start:end]
            if text in vocab:
                pieces.append((vocab[text], start, end))
                break
        else:
            return unknown
        start = end
    return pieces


def word_level(model: Mapping[str, Any], pretoken: str) -> list[Piece]:
    """The pre-token itself, or else the unknown token.

    >>> word_level({"vocab": {"<unk>": 0, "to": 1}, "unk_token": "<unk>"}, "be")
    [(0, 0, 2)]
    """
    vocab = model["vocab"]
    return [(vocab.get(pretoken, vocab[model["unk_token"]]), 0, len(pretoken))]
