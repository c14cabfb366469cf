"""Nobody can choose input that collides in the core's tables, and no result depends on the hash.

The words collide under any hash that loses part of its input. That hashes have keys of their own in
each process, so that nobody can search for collisions, is what the order of a table shows.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from streamtok._core import _testing
from streamtok._core.encode import TokenTable

from ..new_process import python

PLACES = 15  # bits
MOST = 40  # inputs in one of 2^15 places, to which 30 000 random ones give 8


Words = npt.NDArray[np.uint64]
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)
WORDS = 30_000


def letters(rng: np.random.Generator, count: int, size: int) -> npt.NDArray[np.uint8]:
    """uint8 [count, size]: a space and random letters."""
    made = LETTERS[rng.integers(0, len(LETTERS), (count, size))]
    made[:, 0] = ord(" ")
    return made


def halves(words: npt.NDArray[np.uint8]) -> tuple[Words, Words]:
    """The two halves of the keys of words of 15 bytes."""
    padded = np.zeros((len(words), 16), np.uint8)
    padded[:, :15] = words
    padded[:, 15] = 15
    keys = padded.view("<u8")
    return keys[:, 0], keys[:, 1]


def differing(rng: np.random.Generator, size: int, places: list[int]) -> npt.NDArray[np.uint8]:
    """Words that differ in these bytes only."""
    made = np.repeat(letters(rng, 1, size), WORDS, axis=0)
    made[:, places] = letters(rng, WORDS, len(places) + 1)[:, 1:]
    return made


def keys_of(words: np.ndarray) -> bytes:
    """The keys of short pre-tokens."""
    return np.stack(halves(words), 1).astype("<u8").tobytes()


def each_byte(rng: np.random.Generator) -> bytes:
    """16 bytes, and what differs from them in one byte only: whatever the hash loses shows."""
    made = np.repeat(rng.integers(0, 256, (1, 16), np.uint8), 16 * 256, axis=0)
    for place in range(16):
        made[256 * place :][:256, place] = np.arange(256)
    return made.tobytes()


SHAPES = {
    "one byte of each word": lambda rng: many(rng, [7, 14]),
    "last bytes": lambda rng: many(rng, [6, 7, 14]),
    "first half": lambda rng: many(rng, [1, 2, 3, 4]),
    "second half": lambda rng: many(rng, [8, 9, 10, 11]),
    "each byte alone": each_byte,
    "in a row": lambda rng: np.arange(60_000, dtype="<u8").tobytes(),
    "high words in a row": lambda rng: (np.arange(60_000, dtype="<u8") << np.uint64(45)).tobytes(),
}


def many(rng: np.random.Generator, places: list[int]) -> bytes:
    return keys_of(np.unique(differing(rng, 15, places), axis=0))


@pytest.mark.parametrize("as_keys", [True, False], ids=["keys", "bytes"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_place_is_crowded(shape: str, as_keys: bool) -> None:
    assert _testing.crowd(SHAPES[shape](np.random.default_rng(1)), as_keys, PLACES) < MOST


def test_a_chosen_vocabulary_spreads() -> None:
    tokens = [number.to_bytes(16, "little") for number in range(WORDS)]
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
        outcome, order = python(PROGRAM, tmp_path / name).split()
        outcomes.add((outcome, (tmp_path / name).read_bytes()))
        orders.add(order)
    assert len(outcomes) == 1
    assert len(orders) == 2


def test_pairs_beyond_the_last_bucket_go_on_in_the_first() -> None:
    """Of 12 pairs for two buckets of 8, more than 8 are for the last one in 7 of 100 tables."""
    rng = random.Random(1)
    for _ in range(300):
        parts = rng.sample(range(1 << 21), 24)
        assert _testing.found_pairs(parts[:12], parts[12:]) == list(range(12))
