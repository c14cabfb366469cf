"""Unigram as `tokenizers` has it (`encode_optimized`), slow and obvious.

The sums are float64, from the beginning of the pre-token on, in the order of its characters: which
of two paths is better may depend on the last bit. A path gives way to one that is better, not to
one that is as good, and those of pieces that begin earlier are found first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .wordpiece import Piece

__all__ = ["unigram"]

UNKNOWN_PENALTY = 10.0


def unigram(model: Mapping[str, Any], pretoken: str) -> list[Piece]:
    """The pieces with the greatest sum of scores, as (id, start, end) in characters.

    model: the field `model` of a `tokenizer.json`, with the scores as `serde_float` reads them.

    >>> vocab = [["<unk>", 0.0], ["a", 0.0], ["b", 0.0], ["c", 0.0], ["ab", 2.0], ["abc", 5.0]]
    >>> unigram({"vocab": vocab, "unk_id": 0}, "abcaxxb")
    [(5, 0, 3), (1, 3, 4), (0, 4, 6), (2, 6, 7)]
    """
    vocab, unknown = model["vocab"], model["unk_id"]
    ids = {text: id for id, (text, _) in enumerate(vocab)}  # of a text that is twice, the last
    worst = min(score for _, score in vocab) - UNKNOWN_PENALTY
    best: dict[int, tuple[float, int, int]] = {0: (0.0, -1, -1)}  # by end: score, start, id
    for start in range(len(pretoken)):
        so_far = best[start][0]
        found = [
            (end, ids[pretoken[start:end]])
            for end in range(start + 1, len(pretoken) + 1)
            if pretoken[start:end] in ids
        ]
        steps = [(end, vocab[id][1] + so_far, id) for end, id in found]
        if not found or found[0][0] > start + 1:
            steps.append((start + 1, worst + so_far, unknown))
        for end, score, id in steps:
            if end not in best or score > best[end][0]:
                best[end] = (score, start, id)
    path: list[Piece] = []
    end = len(pretoken)
    while end > 0:
        _, start, id = best[end]
        path.append((id, start, end))
        end = start
    return _without_runs(model, ids, pretoken, path[::-1])


def _without_runs(
    model: Mapping[str, Any], ids: Mapping[str, int], pretoken: str, path: list[Piece]
) -> list[Piece]:
    """The path with one look-up for each run of unknown pieces."""
    unknown = model["unk_id"]
    pieces: list[Piece] = []
    at = 0
    while at < len(path):
        id, start, end = path[at]
        at += 1
        if id != unknown:
            pieces.append((id, start, end))
            continue
        while at < len(path) and path[at][0] == unknown:
            end = path[at][2]
            at += 1
        text = pretoken[start:end]
        fallback = [f"<0x{byte:02X}>" for byte in text.encode()]
        if text in ids:
            pieces.append((ids[text], start, end))
        elif model.get("byte_fallback") and all(byte in ids for byte in fallback):
            pieces += [(ids[byte], start, end) for byte in fallback]
        else:
            pieces.append((unknown, start, end))
    return pieces
