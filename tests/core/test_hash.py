"""Nobody can choose input that collides in the core's tables, and no result depends on the hash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import chosen_input
from streamtok._core import _testing
from streamtok._core.encode import TokenTable

PLACES = 15  # bits
MOST = 40  # inputs in one of 2^15 places, to which 30 000 random ones give 8


def keys_of(words: np.ndarray) -> bytes:
    """The keys of short pre-tokens."""
    return np.stack(chosen_input.halves(words), 1).astype("<u8").tobytes()


SHAPES = {
    "old cells": lambda rng: keys_of(chosen_input.equal_cells(rng)),
    "old slots": lambda rng: keys_of(chosen_input.near(rng, 15, chosen_input.counted_slot)),
    "old tokens": lambda rng: b"".join(chosen_input.equal_tokens(rng)),
    "one byte of each word": lambda rng: many(rng, [7, 14]),
    "last bytes": lambda rng: many(rng, [6, 7, 14]),
    "first half": lambda rng: many(rng, [1, 2, 3, 4]),
    "second half": lambda rng: many(rng, [8, 9, 10, 11]),
    "in a row": lambda rng: np.arange(60_000, dtype="<u8").tobytes(),
    "high words in a row": lambda rng: (np.arange(60_000, dtype="<u8") << np.uint64(45)).tobytes(),
}


def many(rng: np.random.Generator, places: list[int]) -> bytes:
    return keys_of(np.unique(chosen_input.differing(rng, 15, places), axis=0))


@pytest.mark.parametrize("as_keys", [True, False], ids=["keys", "bytes"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_place_is_crowded(shape: str, as_keys: bool) -> None:
    assert _testing.crowd(SHAPES[shape](np.random.default_rng(1)), as_keys, PLACES) < MOST


def test_a_chosen_vocabulary_spreads() -> None:
    tokens = chosen_input.equal_tokens(np.random.default_rng(1))
    ranks = [bytes([i]) for i in range(256)] + tokens
    blob, offsets = b"".join(ranks), np.cumsum([0, *map(len, ranks)]).astype(np.uint32)
    table = TokenTable(blob, offsets, np.arange(len(ranks), dtype=np.uint32))
    assert _testing.longest_run(table) < 400
    assert table.find(tokens[-1]) == len(ranks) - 1


PROGRAM = """
import hashlib, sys
import numpy as np
import streamtok
from streamtok._core.train import PretokenTable
words = "".join(f" word{i}" + "y" * (i % 40) for i in range(5000))
encoding = streamtok.get_encoding("cl100k_base")
ids = encoding.encode_to_numpy(words * 2)
trainer = streamtok.Trainer("cl100k_base")
trainer.update(words)
trainer.save_counts(sys.argv[1])
ranks = trainer.train(2000)._mergeable_ranks
stream = encoding.stream_encoder()
fed = stream.encode(words)
print(hashlib.sha256(ids.tobytes() + repr((ranks, fed)).encode() + stream.getstate()).hexdigest())
table = PretokenTable()
ones = np.ones(256, np.uint64)
table.load(np.arange(256, dtype=np.uint8), np.ones(256, np.uint32), ones, ones)
print(table.export()[0].tobytes().hex())
"""


def test_two_processes_give_the_same(tmp_path: Path) -> None:
    """Ids, saved counts, trained tokens and states, although their hashes have other keys."""
    outcomes, orders = set(), set()
    for name in ("one", "two"):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        outcome, order = done.stdout.split()
        outcomes.add((outcome, (tmp_path / name).read_bytes()))
        orders.add(order)
    assert len(outcomes) == 1
    assert len(orders) == 2
