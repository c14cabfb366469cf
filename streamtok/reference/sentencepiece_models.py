"""SentencePiece's model unigram, slow and obvious.

A text is as its normalizer leaves it (`normalizers/longest_map.py`), with U+2581 for spaces.
`pieces` are the rows of the file: text, score, type. What a text becomes are rows (id, start, end):
each id, and the characters of the text that it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .wordpiece import Piece

__all__ = ["unigram"]

Row = tuple[str, float, int]
NORMAL, UNKNOWN, USER_DEFINED, BYTE = 1, 2, 4, 6
UNKNOWN_PENALTY = np.float32(10)
FARTHEST = 100_000  # from 0 of a sum


def unigram(pieces: Sequence[Row], text: str) -> list[Piece]:
    """The pieces with the greatest sum of scores, over the whole text (`EncodeOptimized`).

    The sums are float32. Where that of a place is far from 0, it is subtracted from those of all
    places after it. A user-defined symbol has a score of its own. All that is as in sentencepiece
    0.2.2 and later.

    >>> unigram([("<unk>", 0.0, 2), ("a", -1.0, 1), ("ab", -3.0, 1), ("b", -1.5, 1)], "abc")
    [(1, 0, 1), (3, 1, 2), (0, 2, 3)]
    """
    normal = [np.float32(score) for _, score, kind in pieces if kind == NORMAL]
    scores: dict[str, tuple[np.float32, int]] = {}
    for id, (piece, score, kind) in enumerate(pieces):
        if kind == NORMAL:
            scores[piece] = np.float32(score), id
        elif kind == USER_DEFINED:
            scores[piece] = np.float32(len(piece.encode()) * 0.1 - 0.1), id
    unknown_score = min(normal) - UNKNOWN_PENALTY
    longest = max(map(len, scores))
    best: dict[int, tuple[Any, int, int]] = {0: (np.float32(0), -1, -1)}
    for start in range(len(text)):
        so_far = best[start][0]
        if abs(so_far) > FARTHEST:
            for end in [end for end in best if end >= start]:
                best[end] = best[end][0] - so_far, *best[end][1:]
            so_far = np.float32(0)
        steps = [
            (end, scores[text[start:end]][0] + so_far, scores[text[start:end]][1])
            for end in range(start + 1, min(start + longest, len(text)) + 1)
            if text[start:end] in scores
        ]
        if not steps or steps[0][0] > start + 1:
            steps.append((start + 1, unknown_score + so_far, _unknown(pieces)))
        for end, score, id in steps:
            if end not in best or score > best[end][0]:
                best[end] = score, start, id
    path: list[Piece] = []
    end = len(text)
    while end > 0:
        _, start, id = best[end]
        path.append((id, start, end))
        end = start
    return _without_unknown(pieces, text, path[::-1])


def _unknown(pieces: Sequence[Row]) -> int:
    return next(id for id, (_, _, kind) in enumerate(pieces) if kind == UNKNOWN)


def _without_unknown(pieces: Sequence[Row], text: str, path: list[Piece]) -> list[Piece]:
    """The path with bytes in place of unknown pieces, or with one id for each run of them."""
    unknown = _unknown(pieces)
    byte_ids = {piece: id for id, (piece, _, kind) in enumerate(pieces) if kind == BYTE}
    found: list[Piece] = []
    for id, start, end in path:
        if id != unknown:
            found.append((id, start, end))
        elif byte_ids:
            for at in range(start, end):
                names = [f"<0x{byte:02X}>" for byte in text[at].encode()]
                found += [(byte_ids[name], at, at + 1) for name in names]
        elif found and found[-1][0] == unknown:
            found[-1] = unknown, found[-1][1], end
        else:
            found.append((id, start, end))
    return found
