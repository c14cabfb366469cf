"""How much of some bytes is UTF-8: what Python's decoder says, at every place in a block."""

from __future__ import annotations

import random

import pytest

from streamtok._core._testing import well_formed

# What begins, ends and lies beside each range of the table of well-formed sequences (Unicode 3.9).
EDGES = [
    *(0x00, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000, 0xD7FF, 0xE000, 0xFFFF),
    *(0x10000, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FFFF),
]
BYTES = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1]
BYTES += [0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF]


def expected(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(data)


@pytest.mark.parametrize("first", BYTES)
def test_every_sequence_at_the_edge_of_a_block(first: int) -> None:
    rng = random.Random(first)
    for second in BYTES:
        for third in BYTES:
            for fourth in rng.sample(BYTES, 6):
                odd = bytes([first, second, third, fourth])
                at = rng.choice([*range(35), *range(58, 70), 95, 96, 97])
                for filling in (b"a", "é".encode(), "日".encode(), "😀".encode()):
                    data = (filling * 100)[: at // len(filling) * len(filling)] + odd
                    data += filling * 50
                    assert well_formed(data) == expected(data), data.hex()


@pytest.mark.parametrize("seed", range(20))
def test_texts_with_a_few_bytes_changed(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(400):
        points = [rng.choice(EDGES) for _ in range(rng.choice([3, 30, 200]))]
        data = bytearray("".join(map(chr, points)).encode())
        for _ in range(rng.choice([0, 0, 1, 1, 3])):
            data[rng.randrange(len(data))] = rng.choice(BYTES)
        data = data[: rng.randint(0, len(data))]
        assert well_formed(bytes(data)) == expected(bytes(data)), data.hex()
