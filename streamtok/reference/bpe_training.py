"""BPE training, slow and obvious: the tests compare the fast trainer with it.

A text is cut into pre-tokens. Each pre-token starts as the list of its bytes. Then, repeatedly, the
most frequent pair of neighbours gets the next id, which replaces it everywhere, from left to right.
Trainers differ in which of several equally frequent pairs they take first:

raw    the pair with the smallest (left id, right id): rustbpe
hf     the same, but with the bytes in the order of Hugging Face's ByteLevel alphabet
first  the pair that comes first in the text after the merges so far: minbpe's RegexTokenizer

With `max_token_length`, tokens of three bytes or more must be shorter than this limit, as in
Hugging Face's trainer.

Overlapping pairs count: "aaa" has the pair (a, a) twice, although only one can be replaced. All
three trainers agree on that.

The tie rules are those of karpathy/rustbpe `src/lib.rs`, huggingface/tokenizers
`tokenizers/src/models/bpe/trainer.rs` and karpathy/minbpe `minbpe/regex.py`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, TypeVar

from ..vocabulary.byte_alphabet import BYTES_IN_ORDER
from .bpe import split

__all__ = ["next_merges", "replace_pair", "train", "train_pretokens"]

Pair = tuple[int, int]
Token = TypeVar("Token", bytes, str)


def replace_pair(ids: list[int], pair: Pair, new: int) -> list[int]:
    """A copy of `ids` in which `new` replaces each `pair`, from left to right.

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
    documents: Iterable[str], vocab_size: int, pattern: str, **settings: Any
) -> list[tuple[bytes, bytes]]:
    """The merges, in order. Merge i makes the token with id 256 + i. settings: see `next_merges`.

    >>> train(["low lower lowest"], 258, r"\\w+|\\s")
    [(b'l', b'o'), (b'lo', b'w')]
    """
    pretokens = [part.encode() for text in documents for part in split(pattern, text)]
    return train_pretokens(pretokens, vocab_size, **settings)


def train_pretokens(
    pretokens: Iterable[bytes], vocab_size: int, **settings: Any
) -> list[tuple[bytes, bytes]]:
    """Like `train`, for text that is already cut into pre-tokens.

    >>> train_pretokens([b"low", b"lower"], 258)
    [(b'l', b'o'), (b'lo', b'w')]
    """
    rows = [list(pretoken) for pretoken in pretokens]
    tokens = {byte: bytes([byte]) for byte in range(256)}
    return next_merges(rows, tokens, range(256, vocab_size), **settings)


def next_merges(
    rows: list[list[int]],
    tokens: Mapping[int, Token],
    new_ids: Iterable[int],
    *,
    min_frequency: int = 1,
    tie: str = "raw",
    max_token_length: int | None = None,
    join: Callable[[Token, Token], Token] = operator.add,
) -> list[tuple[Token, Token]]:
    """Continue training from these rows of ids; return the merges for the new ids, in order.

    Training ends early if no pair is frequent enough. join: makes a token from the two merged ones.

    >>> next_merges([[256, 119], [256, 101]], {101: b"e", 119: b"w", 256: b"lo"}, [300])
    [(b'lo', b'e')]
    """
    tokens = dict(tokens)
    order = {id: id for id in tokens}  # the order of ids that decides which pair is the smallest
    if tie == "hf":
        order |= {byte: index for index, byte in enumerate(BYTES_IN_ORDER)}
    merges: list[tuple[Token, Token]] = []
    for new in new_ids:
        counts = Counter(pair for ids in rows for pair in pairwise(ids))  # in text order
        if max_token_length is not None:
            sizes = {pair: len(tokens[pair[0]] + tokens[pair[1]]) for pair in counts}
            counts = Counter(
                {p: counts[p] for p in counts if sizes[p] == 2 or sizes[p] < max_token_length}
            )
        most = max(counts.values(), default=0)
        if most < max(min_frequency, 1):
            break
        tied = [pair for pair, count in counts.items() if count == most]
        best = tied[0] if tie == "first" else min(tied, key=lambda p: (order[p[0]], order[p[1]]))
        merges.append((tokens[best[0]], tokens[best[1]]))
        rows = [replace_pair(ids, best, new) for ids in rows]
        order[new] = new
        tokens[new] = join(tokens[best[0]], tokens[best[1]])
    return merges
