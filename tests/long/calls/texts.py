"""Texts around the sizes at which the code takes another path."""

from __future__ import annotations

import random

from ..states.encodings import Subject

# Bytes, characters or ids, each the last or the first size of something.
SMALL = [
    0, 1, 4,  # ids in a cell
    15,  # bytes of a pre-token that is its own key
    16, 64,  # that waits for others, and of a segment
    128,  # of a text that is copied so that more may be read
    240, 252, 256,  # whose ids are remembered
    1024,  # of a section, a long segment, and of text that waits before a tail
    4096,  # of a small text
]  # fmt: skip
MIDDLE = [
    1 << 13,  # ids for which a block is made ready
    1 << 14,  # a step of a model, and the smallest run of a batch
    1 << 16,  # a slice of a chunk, and a step of a count
]
LARGE = [
    1 << 17,  # for which another thread starts
    1 << 18,  # a part, and the largest run of a batch
    1 << 20,  # a text in parts
    4 << 20,
]
ODD = [*"é\u0301ÿß", *"日本\u2581\u3000あ", "😀", "👩\u200d👩", "\u00a0", "\r\n", "\x00", "\ufeff"]


def random_size(rng: random.Random, most: int) -> int:
    """Up to about `most`; the larger, the less often."""
    border = rng.choice(rng.choices([SMALL, MIDDLE, LARGE], [82, 16.5, 1.5])[0])
    if rng.random() < 0.3:
        return min(most, rng.randint(0, border))
    times = rng.choice([1, 1, 2, 3]) if border < 1 << 17 else 1
    return min(most, max(0, border * times + rng.randint(-2, 2)))


def random_text(rng: random.Random, subject: Subject, size: int) -> str:
    """So many characters of what matters to this encoding."""
    letters = subject.words
    way = rng.random()
    if way < 0.35:  # the same again and again: what a bound is wrong about adds up
        unit = "".join(rng.choices(letters, k=rng.choice([1, 1, 1, 2, 3])))
        parts = [unit * (size // len(unit) + 1)]
    else:
        some = letters if way < 0.6 else [*rng.choices(letters, k=4), rng.choice([" ", "\n", "a"])]
        some = [*some, *rng.choices(ODD, k=3)] if rng.random() < 0.4 else some
        block = "".join(rng.choices(some, k=min(size, 3000) + 1))
        if size > 3000 and rng.random() < 0.7:  # of several blocks, so that pre-tokens are new
            more = ["".join(rng.choices(some, k=3000)) for _ in range(rng.choice([1, 6, 30]))]
            block += "".join(more)
        parts = [block * (size // len(block) + 1)]
    if rng.random() < 0.2:
        parts.insert(0, rng.choice(ODD))
    if subject.special and rng.random() < 0.3:
        parts.insert(rng.randint(0, len(parts)), rng.choice(subject.special))
    return "".join(parts)[:size]


def cut(rng: random.Random, text: str | bytes, most: int = 40) -> list:
    """The text in up to `most` chunks, some of them empty."""
    places = sorted(rng.choices(range(len(text) + 1), k=rng.randint(0, most - 1)))
    if len(text) <= 300 and rng.random() < 0.3:
        places = list(range(len(text) + 1))
    if len(text) > 1 << 15 and rng.random() < 0.5:  # slices end inside of a chunk, or with it
        step = rng.choice([1 << 14, (1 << 16) - 1, 1 << 16, 1 << 17])
        places = list(range(step, len(text), step))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
