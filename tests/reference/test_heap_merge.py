"""The merge loop with a heap against the one that looks at all pairs, and against the core."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from streamtok.reference.bpe import bpe, bpe_by_merges
from streamtok.reference.heap_merge import HeapMerge, bpe_by_heap

from ..encodings import make_encoding
from .test_reference import LETTERS, PATTERN, random_ranks

RANKS = [random_ranks(seed, size) for seed in range(12) for size in (20, 60, 150)]
PRETOKENS = st.text(LETTERS, max_size=40).map(str.encode) | st.binary(max_size=12)


@settings(max_examples=400)
@given(st.sampled_from(RANKS), PRETOKENS)
def test_ids_are_those_of_the_naive_loop(ranks: dict[bytes, int], pretoken: bytes) -> None:
    assert bpe_by_heap(ranks, pretoken) == bpe(ranks, pretoken)


def test_ids_are_those_of_the_core() -> None:
    rng = random.Random(3)
    for ranks in RANKS[::4]:
        enc = make_encoding(PATTERN, ranks)
        for size in (2, 9, 60, 700):
            data = "".join(rng.choices(LETTERS, k=size)).encode()
            if data not in ranks:  # such a one is not merged
                assert bpe_by_heap(ranks, data) == enc.definition.encoder.encode_pretoken(data)


@settings(max_examples=200)
@given(st.integers(0, 30), st.text("abc", max_size=30).map(str.encode))
def test_lists_of_merges(seed: int, pretoken: bytes) -> None:
    """Only pairs of a list merge, in its order; equal ranks merge from left to right."""
    rng = random.Random(seed)
    tokens = [b"a", b"b", b"c"]
    merges: list[tuple[bytes, bytes]] = []
    while len(merges) < 25:
        pair = rng.choice(tokens), rng.choice(tokens)
        if pair not in merges and len(pair[0] + pair[1]) < 8:
            merges.append(pair)
            tokens.append(pair[0] + pair[1])
    ids = {token: id for id, token in enumerate({bytes([b]) for b in range(256)} | {*tokens})}
    places = {pair: place for place, pair in enumerate(merges)}

    def merged(left: bytes, right: bytes) -> tuple[int, bytes] | None:
        place = places.get((left, right))
        return None if place is None else (place, left + right)

    parts = HeapMerge([bytes([byte]) for byte in pretoken], merged).run()
    assert [ids[part] for part in parts] == bpe_by_merges(ids, merges, pretoken)
