"""Words and tokens that collide under hashes that the core once had, with public constants.

Others differ in a few bytes only: they collide under any hash that loses part of its input.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)
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


def equal_tokens(rng: np.random.Generator) -> list[bytes]:
    """Of 16 bytes, all with one hash in the table of tokens."""
    first = rng.integers(0, 1 << 64, WORDS, np.uint64)
    second = product(first ^ np.uint64(16), np.uint64(SECOND))
    return [row.tobytes() for row in np.stack([first, second], 1).astype("<u8")]
