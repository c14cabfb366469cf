"""Unigram, slow and obvious: as in `tokenizers` (`encode_optimized`), and as in sentencepiece.

Both find the pieces with the greatest sum of scores. Scores are added from left to right, since the
last bit may decide between two paths. A path is replaced only by a better one, not by an equal one,
and paths whose last piece begins earlier are found first. The two differ in precision (float64 and
float32) and in how they encode unknown text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .wordpiece import Piece

__all__ = ["sentencepiece_unigram", "unigram"]

Row = tuple[str, float, int]  # of a SentencePiece model: text, score, type
NORMAL, UNKNOWN, USER_DEFINED, BYTE = 1, 2, 4, 6
UNKNOWN_PENALTY = 10
FARTHEST = 100_000  # sentencepiece subtracts a sum whose absolute value is larger


def unigram(model: Mapping[str, Any], pretoken: str) -> list[Piece]:
    """The pieces of a pre-token in tokenizers, as (id, start, end) in characters.

    model: the field `model` of a `tokenizer.json`, with the scores as `serde_float` reads them.

    >>> vocab = [["<unk>", 0.0], ["a", 0.0], ["b", 0.0], ["c", 0.0], ["ab", 2.0], ["abc", 5.0]]
    >>> unigram({"vocab": vocab, "unk_id": 0}, "abcaxxb")
    [(5, 0, 3), (1, 3, 4), (0, 4, 6), (2, 6, 7)]
    """
    vocab, unknown = model["vocab"], model["unk_id"]
    # If a text occurs twice, its last occurrence counts.
    pieces = {text: (score, id) for id, (text, score) in enumerate(vocab)}
    worst = min(score for _, score in vocab) - UNKNOWN_PENALTY
    found: list[Piece] = []
    for id, start, end in _runs(_best_path(pretoken, pieces, (worst, unknown)), unknown):
        text = pretoken[start:end]
        fallback = [f"<0x{byte:02X}>" for byte in text.encode()]
        if id != unknown:
            found.append((id, start, end))
        elif text in pieces:
            found.append((pieces[text][1], start, end))
        elif model.get("byte_fallback") and all(byte in pieces for byte in fallback):
            found += [(pieces[byte][1], start, end) for byte in fallback]
        else:
            found.append((unknown, start, end))
    return found


def sentencepiece_unigram(rows: Sequence[Row], text: str) -> list[Piece]:
    """The pieces of a whole text in sentencepiece 0.2.2 and later (`EncodeOptimized`).

    text: already normalized (`normalizers/longest_map.py`), with U+2581 for spaces. The score of a
    user-defined symbol depends on its length.

    >>> rows = [("<unk>", 0.0, 2), ("a", -1.0, 1), ("ab", -3.0, 1), ("b", -1.5, 1)]
    >>> sentencepiece_unigram(rows, "abc")
    [(1, 0, 1), (3, 1, 2), (0, 2, 3)]
    """
    pieces = {}
    for id, (piece, score, kind) in enumerate(rows):
        if kind == USER_DEFINED:
            score = len(piece.encode()) * 0.1 - 0.1
        if kind in (NORMAL, USER_DEFINED):
            pieces[piece] = np.float32(score), id
    worst = min(np.float32(score) for _, score, kind in rows if kind == NORMAL)
    unknown = next(id for id, (_, _, kind) in enumerate(rows) if kind == UNKNOWN)
    path = _best_path(text, pieces, (worst - np.float32(UNKNOWN_PENALTY), unknown), FARTHEST)
    byte_ids = {piece: id for id, (piece, _, kind) in enumerate(rows) if kind == BYTE}
    if not byte_ids:
        return _runs(path, unknown)
    found: list[Piece] = []
    for id, start, end in path:
        names = [f"<0x{byte:02X}>" for byte in text[start:end].encode()] if id == unknown else []
        found += [(byte_ids[name], start, end) for name in names] or [(id, start, end)]
    return found


def _best_path(
    text: str,
    pieces: Mapping[str, tuple[Any, int]],
    unknown: tuple[Any, int],
    farthest: float = math.inf,
) -> list[Piece]:
    """The pieces with the greatest sum of scores.

    pieces: (score, id) by text; unknown: (score, id) of an unknown character. farthest: if the
    absolute value of a sum is larger, it is subtracted from all sums from its offset on.
    """
    longest = max(map(len, pieces))
    best = {0: (type(unknown[0])(0), -1, -1)}  # by end: score, start, id
    for start in range(len(text)):
        so_far = best[start][0]
        if abs(so_far) > farthest:
            for end in [end for end in best if end >= start]:
                best[end] = best[end][0] - so_far, *best[end][1:]
            so_far = best[start][0]
        ends = range(start + 1, min(start + longest, len(text)) + 1)
        steps = [(end, *pieces[text[start:end]]) for end in ends if text[start:end] in pieces]
        if not steps or steps[0][0] > start + 1:
            steps.append((start + 1, *unknown))
        for end, score, id in steps:
            if end not in best or score + so_far > best[end][0]:
                best[end] = score + so_far, start, id
    path: list[Piece] = []
    end = len(text)
    while end > 0:
        _, start, id = best[end]
        path.append((id, start, end))
        end = start
    return path[::-1]


def _runs(path: list[Piece], unknown: int) -> list[Piece]:
    """The path, with one piece for each run of unknown characters."""
    found: list[Piece] = []
    for id, start, end in path:
        if found and id == unknown == found[-1][0]:
            found[-1] = unknown, found[-1][1], end
        else:
            found.append((id, start, end))
    return found
