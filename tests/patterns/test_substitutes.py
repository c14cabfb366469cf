"""ASCII in the place of other characters: pre-tokens begin at the same characters."""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamtok._core._testing import levels, squeeze, use_tier
from streamtok.patterns.pattern import Pattern

from ..conftest import PACKED, encoding_of, scanner_of
from ..core.test_fast_paths import SPLITS

# Letters of two and three bytes of every case, marks, digits, blanks, punctuation, what folds to
# ASCII, what lies beyond the first plane, and ASCII around them.
CHARACTERS = [
    *"éßĲŉЖжΩωאبคनあ中ǅʰ\u0301\u093e\u0e31٣०\xa0\u2003\u3000、。«¿…€ſK\u200d\ufeff\ue000\uffff",
    *("😀", "𝐀", "𠀀", "\U0001f3fd"),
    *"abstX'1 .\n\r\t!\0\x01\x7f",
    *("Жжж", "中中中", " é", "'ſ", "é's", "..", "é\u0301", "11"),
]


def random_text(rng: random.Random, size: int) -> str:
    some = rng.choices(CHARACTERS, k=rng.choice([2, 5, len(CHARACTERS)]))
    return "".join(rng.choices(some, k=size))


def replaced(table: np.ndarray, text: str) -> str:
    """str: the text with substitutes, character by character."""
    points = (ord(character) for character in text)
    return "".join(
        chr(table[point]) if point < 0x10000 and table[point] else chr(point) for point in points
    )


def squeezed(table: np.ndarray, text: str) -> tuple[bytes, list[bool]]:
    """What the core is to make of the text, and which of its bytes give one."""
    made, kept = bytearray(), []
    for character in text:
        data = character.encode()
        if len(data) in (2, 3):
            made.append(int(table[ord(character)]) or 0xFF)
            kept += [True] + [False] * (len(data) - 1)
        else:
            made += data
            kept += [True] * len(data)
    return bytes(made), kept


def bits(words: np.ndarray) -> list[bool]:
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool).tolist()


# After a blank a run of letters ends at the last letter but one: copies of one would be a run.
MORE = [r" \p{L}+(?=\p{L})| |\p{L}+|[\s\S]", r" \p{L}+(?!\p{L})| |\p{L}+|[\s\S]"]


@pytest.mark.parametrize("source", [*SPLITS, *MORE])
def test_pretokens_begin_where_they_did(source: str) -> None:
    pattern = Pattern.compile(source)
    table = pattern.substitutes
    if table is None:
        return
    assert not table[:128].any()
    assert table.max() < 128
    rng = random.Random(source)
    for _ in range(150):
        text = random_text(rng, rng.randint(1, 120))
        sizes = [len(pretoken) for pretoken in pattern.findall(text)]
        assert [len(pretoken) for pretoken in pattern.findall(replaced(table, text))] == sizes


@pytest.mark.parametrize("name", PACKED)
def test_characters_have_substitutes(name: str) -> None:
    table = encoding_of(name).pattern.substitutes
    assert table is not None
    assert chr(table[ord("ж")]).isalpha()
    assert chr(table[ord("Ж")]).isalpha()
    assert chr(table[ord("\u3000")]).isspace()
    assert chr(table[ord("٣")]).isdigit()
    assert not table[0xD800:0xE000].any()
    # o200k tells letters without a case from all of ASCII, and marks from punctuation.
    assert bool(table[ord("中")]) == (name != "o200k_base")
    assert bool(table[ord("\u093e")]) == (name != "o200k_base")


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("name", PACKED)
def test_a_byte_for_each_character(name: str, level: int) -> None:
    pattern = encoding_of(name).pattern
    table = pattern.substitutes
    assert table is not None
    scanner = scanner_of(pattern)
    use_tier(scanner, level)
    rng = random.Random(name)
    for _ in range(200):
        before = random_text(rng, rng.choice([0, 1, 7, 8, 9, 31, 200]))
        text = random_text(rng, rng.choice([65, 300, 900]))
        start = len(before.encode())
        blocks = len(text.encode()) // 64
        made, kept = squeezed(table, text)
        expected = kept[: 64 * blocks]
        found, places, margin = squeeze(scanner, (before + text).encode(), start, blocks)
        assert found == made[: sum(expected)]
        assert bits(places) == expected
        last = squeezed(table, before)[0][-8:]
        assert margin == last or (margin is None and (len(last) < 8 or start < 32))


@pytest.mark.parametrize("name", PACKED)
def test_squeezing_what_is_no_text(name: str) -> None:
    """All tiers agree on any bytes, wherever they begin and end."""
    scanners = {level: scanner_of(encoding_of(name).pattern) for level in levels()}
    for level, scanner in scanners.items():
        use_tier(scanner, level)
    plain = scanners.pop(0)
    rng = random.Random(name)
    odd = [*range(256), *[0x80, 0xBF, 0xC2, 0xD0, 0xE0, 0xE4, 0xED, 0xEF, 0xF0, 0xF4] * 30]
    for _ in range(300):
        data = bytearray(random_text(rng, 700).encode())
        for _ in range(rng.choice([0, 3, 400])):
            data[rng.randrange(len(data))] = rng.choice(odd)
        start = rng.randrange(200)
        blocks = (len(data) - start) // 64 - rng.randrange(3)
        if blocks < 1:
            continue
        expected, places, _ = squeeze(plain, data, start, blocks)
        assert sum(bits(places)) == len(expected)
        for level, scanner in scanners.items():
            made = squeeze(scanner, data, start, blocks)
            assert made[0] == expected, (level, data.hex())
            assert bits(made[1]) == bits(places)
