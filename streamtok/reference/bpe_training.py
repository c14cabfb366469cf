"""Training a vocabulary, slow and obvious: the oracle of the fast trainer's tests.

A text is cut into pieces; each piece is a row of ids, at first its bytes. Then, again and again,
the pair of neighbours that occurs most often is given the next id and replaced everywhere, from
left to right. Where several pairs occur equally often, trainers differ:

raw    the pair with the smallest (left id, right id): rustbpe
hf     the same, but with the bytes in the order of Hugging Face's ByteLevel alphabet
first  the pair that comes first in the text as it is by now: minbpe's RegexTokenizer

A pair of the same two ids is counted wherever it stands, so that "aaa" has it twice, and is
replaced once there: all three agree.

The tie rules are those of karpathy/rustbpe `src/lib.rs`, huggingface/tokenizers
`tokenizers/src/models/bpe/trainer.rs` and karpathy/minbpe `minbpe/regex.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from .bpe import split

__all__ = ["byte_level_order", "replace_pair", "train", "train_pieces"]

Pair = tuple[int, int]


def byte_level_order() -> list[int]:
    """The place of each byte in Hugging Face's ByteLevel alphabet.

    GPT-2 stands for each byte by a printable character: those that are one by themselves, and
    U+0100, U+0101, … in turn for the others. The alphabet is in the order of these characters.
    """
    own = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in own]
    places = [0] * 256
    for place, byte in enumerate(own + others):
        places[byte] = place
    return places


def replace_pair(ids: list[int], pair: Pair, new: int) -> list[int]:
    """`ids` with `new` for each `pair`, from left to right.

    >>> replace_pair([1, 1, 1, 2], (1, 1), 3)
    [3, 1, 2]
    """
    result = []
    i = 0
    while i < len(ids):
        found = tuple(ids[i : i + 2]) == pair
        result.append(new if found else ids[i])
        i += 2 if found else 1
    return result


def train(
    documents: Iterable[str],
    vocab_size: int,
    pattern: str,
    *,
    min_frequency: int = 1,
    tie: str = "raw",
) -> list[tuple[bytes, bytes]]:
    """The merges in order; merge i makes the token of id 256 + i.

    >>> train(["low lower lowest"], 258, r"\\w+|\\s")
    [(b'l', b'o'), (b'lo', b'w')]
    """
    pieces = [piece.encode() for text in documents for piece in split(pattern, text)]
    return train_pieces(pieces, vocab_size, min_frequency=min_frequency, tie=tie)


def train_pieces(
    pieces: Iterable[bytes], vocab_size: int, *, min_frequency: int = 1, tie: str = "raw"
) -> list[tuple[bytes, bytes]]:
    """As `train`, of text that has been cut already.

    >>> train_pieces([b"low", b"lower"], 258)
    [(b'l', b'o'), (b'lo', b'w')]
    """
    rows = [list(piece) for piece in pieces]
    tokens = [bytes([byte]) for byte in range(256)]
    order = byte_level_order() if tie == "hf" else list(range(256))
    merges: list[tuple[bytes, bytes]] = []
    while len(tokens) < vocab_size:
        counts = Counter(pair for ids in rows for pair in pairwise(ids))  # in order of occurrence
        most = max(counts.values(), default=0)
        if most < max(min_frequency, 1):
            break
        tied = [pair for pair, count in counts.items() if count == most]
        best = tied[0] if tie == "first" else min(tied, key=lambda p: (order[p[0]], order[p[1]]))
        merges.append((tokens[best[0]], tokens[best[1]]))
        rows = [replace_pair(ids, best, len(tokens)) for ids in rows]
        order.append(len(tokens))
        tokens.append(tokens[best[0]] + tokens[best[1]])
    return merges
