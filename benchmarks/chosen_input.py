"""Input chosen to be slow: `python -m benchmarks.chosen_input`.

Compares its time with that of random input of the same shape, and exits with 1 where it takes more
than 3 times as long.

Some rows collide under the hashes that the core once had, whose constants were public; the others
under any hash that loses part of its input. Best of `--runs` fresh runs each; the ids of
some of each text are compared with those of the reference.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import streamtok
from streamtok.reference import bpe

Words = npt.NDArray[np.uint64]
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)
MOST = 3.0
GOLDEN, SECOND = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
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


def product(a: Words, b: Words | np.uint64) -> Words:
    """Both halves of the 128 bits of a times b, one xor the other."""
    mask, down = np.uint64(0xFFFFFFFF), np.uint64(32)
    al, ah, bl, bh = a & mask, a >> down, b & mask, b >> down
    middle = ah * bl + (al * bl >> down)
    other = al * bh + (middle & mask)
    return (ah * bh + (middle >> down) + (other >> down)) ^ (a * b)


def equal_cells(rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Of the pre-token cache: low * GOLDEN + high * SECOND has the same 20 bits at the top."""
    pool = letters(rng, 1 << 20, 15)
    low = halves(pool)[0] * np.uint64(GOLDEN)
    order = np.argsort(low)
    made = letters(rng, WORDS, 15)
    wanted = np.uint64(0) - halves(made)[1] * np.uint64(SECOND)
    found = order[np.searchsorted(low[order], wanted) % len(order)]
    made[:, :8] = pool[found, :8]
    return made


def near(
    rng: np.random.Generator, size: int, places: Callable[[npt.NDArray[np.uint8]], Words]
) -> npt.NDArray[np.uint8]:
    """Words that belong in one 64th of a table."""
    chosen: list[npt.NDArray[np.uint8]] = []
    while sum(map(len, chosen)) < WORDS:
        pool = letters(rng, 1 << 19, size)
        chosen.append(pool[places(pool) == 0])
    return np.concatenate(chosen)[:WORDS]


def long_cell(words: npt.NDArray[np.uint8]) -> Words:
    """Of 24 bytes: the upper bits of the number of a cell, of 1 << 16."""
    w = words.view("<u8")
    return product(
        product(w[:, 0] ^ np.uint64(24), w[:, 2] ^ np.uint64(SECOND)) ^ w[:, 1], np.uint64(GOLDEN)
    ) >> np.uint64(42) & np.uint64(63)


def counted_slot(words: npt.NDArray[np.uint8]) -> Words:
    """Of a table of counts with 1 << 16 slots: the upper bits of the number of a slot."""
    low, high = halves(words)
    return product(low ^ np.uint64(GOLDEN), high ^ np.uint64(SECOND)) >> np.uint64(10) & np.uint64(
        63
    )


def differing(rng: np.random.Generator, size: int, places: list[int]) -> npt.NDArray[np.uint8]:
    """Words that differ in these bytes only."""
    made = np.repeat(letters(rng, 1, size), WORDS, axis=0)
    made[:, places] = letters(rng, WORDS, len(places) + 1)[:, 1:]
    return made


def text_of(words: npt.NDArray[np.uint8]) -> str:
    return words.tobytes().decode() * 3


def encode(text: str) -> None:
    encoding = streamtok.get_encoding("cl100k_base")
    encoding._encoder.release()
    encoding.count(text)


def train(text: str) -> None:
    streamtok.Trainer("cl100k_base").update(text, final=True)


def load(tokens: list[bytes]) -> None:
    singles = [bytes([i]) for i in range(256)]
    ranks = {token: rank for rank, token in enumerate(singles + tokens)}
    streamtok.Encoding("chosen", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={})


def equal_tokens(rng: np.random.Generator) -> list[bytes]:
    """Of 16 bytes, all with one hash in the table of tokens."""
    first = rng.integers(0, 1 << 64, WORDS, np.uint64)
    second = product(first ^ np.uint64(16), np.uint64(SECOND))
    return [row.tobytes() for row in np.stack([first, second], 1).astype("<u8")]


def rows() -> dict[str, tuple[Callable[[Any], None], object, object]]:
    """Name → what is timed, chosen input, random input."""
    rng = np.random.default_rng(1)
    short, long = letters(rng, WORDS, 15), letters(rng, WORDS, 24)
    texts = {
        "encode: old cells": (equal_cells(rng), short),
        "encode: old long cells": (near(rng, 24, long_cell), long),
        "encode: last byte of both words": (differing(rng, 15, [7, 14]), None),
        "encode: last bytes of both words": (differing(rng, 15, [6, 7, 14]), None),
        "encode: equal first half": (differing(rng, 15, [8, 9, 10, 11]), None),
        "encode: equal second half": (differing(rng, 15, [1, 2, 3, 4]), None),
        "encode: long, last byte of each word": (differing(rng, 24, [7, 15, 23]), None),
        "encode: long, one byte": (differing(rng, 200, [100]), None),
        "train: old slots": (near(rng, 15, counted_slot), short),
        "train: last bytes of both words": (differing(rng, 15, [6, 7, 14]), None),
    }
    made = {}
    for name, (chosen, ordinary) in texts.items():
        if ordinary is None:  # as often the same words, of the same size
            different = np.unique(chosen, axis=0, return_inverse=True)[1].ravel()
            ordinary = letters(rng, WORDS, chosen.shape[1])[different]
        made[name] = (
            train if name.startswith("train") else encode,
            text_of(chosen),
            text_of(ordinary),
        )
    tokens = [token.tobytes() for token in rng.integers(0, 256, (WORDS, 16), np.uint8)]
    made["load: old token table"] = (load, equal_tokens(rng), tokens)
    return made


def seconds(what: Callable[[Any], None], given: Any) -> float:
    started = time.process_time()
    what(given)
    return time.process_time() - started


def check(text: str) -> None:
    """Compare ids with the reference, of 500 words from everywhere."""
    encoding = streamtok.get_encoding("cl100k_base")
    words = text.split(" ")[1:]
    some = "".join(" " + word for word in random.Random(1).sample(words, 500))
    assert encoding.encode_ordinary(some) == bpe.encode_ordinary(
        encoding._mergeable_ranks, encoding._pat_str, some.encode()
    )
    assert encoding.decode(encoding.encode_ordinary(text)) == text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--runs", type=int, default=5, help="runs of each, of which the best counts"
    )
    runs = parser.parse_args().runs
    worst = 0.0
    for name, (what, chosen, ordinary) in rows().items():
        if what is encode:
            check(chosen)
        times = [(seconds(what, chosen), seconds(what, ordinary)) for _ in range(runs)]
        one, other = min(t[0] for t in times), min(t[1] for t in times)
        worst = max(worst, one / other)
        print(
            f"{name:40} {one * 1e3:9.1f} ms, random {other * 1e3:7.1f} ms: {one / other:6.2f}",
            flush=True,
        )
    return worst > MOST


if __name__ == "__main__":
    raise SystemExit(main())
