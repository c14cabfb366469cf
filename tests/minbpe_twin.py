"""What minbpe's RegexTokenizer does with its model, in a few lines: it is on no package index.

After github.com/karpathy/minbpe (MIT): `load`, and `encode` with each pair of the lowest index
merged everywhere at once.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import regex


class Twin:
    def __init__(self, path: Path):
        lines = path.read_text("utf-8").split("\n")
        assert lines[0].strip() == "minbpe v1"
        self.pattern = lines[1].strip()
        count = int(lines[2])
        self.special_tokens = {}
        for line in lines[3 : 3 + count]:
            text, number = line.strip().split()
            self.special_tokens[text] = int(number)
        self.merges = {}
        for line in lines[3 + count :]:
            if line:
                left, right = map(int, line.split())
                self.merges[left, right] = 256 + len(self.merges)

    def encode_ordinary(self, text: str) -> list[int]:
        pieces = regex.findall(self.pattern, text) if self.pattern else [text]
        return [token for piece in pieces for token in self.encode_piece(piece.encode())]

    def encode_piece(self, piece: bytes) -> list[int]:
        ids = list(piece)
        while len(ids) > 1:
            pairs = list(itertools.pairwise(ids))
            pair = min(pairs, key=lambda p: self.merges.get(p, float("inf")))
            if pair not in self.merges:
                break
            merged, i = [], 0
            while i < len(ids):
                if tuple(ids[i : i + 2]) == pair:
                    merged.append(self.merges[pair])
                    i += 2
                else:
                    merged.append(ids[i])
                    i += 1
            ids = merged
        return ids
