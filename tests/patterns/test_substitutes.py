"""ASCII in the place of other characters changes no place at which a piece begins."""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamtok._core._testing import substitute, use_tier
from streamtok.patterns.pattern import Pattern

from ..conftest import PACKED, encoding_of, scanner_of
from ..core.test_fast_paths import SPLITS, starts_of

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
    """str: the text with stand-ins, character by character."""
    made = []
    for character in text:
        point = ord(character)
        one = int(table[point]) if point < 0x10000 else 0
        made.append(chr(one) * len(character.encode()) if one else character)
    return "".join(made)


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
        stand = replaced(table, text)
        assert len(stand.encode()) == len(text.encode())
        np.testing.assert_array_equal(starts_of(pattern, stand), starts_of(pattern, text), text)


@pytest.mark.parametrize("name", PACKED)
def test_letters_have_stand_ins(name: str) -> None:
    table = encoding_of(name).pattern.substitutes
    assert table is not None
    assert chr(table[ord("ж")]).isalpha()
    assert chr(table[ord("Ж")]).isalpha()
    assert not table[0xD800:0xE000].any()
    # o200k tells letters without a case from all of ASCII, and marks from punctuation.
    assert bool(table[ord("中")]) == (name != "o200k_base")


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("name", PACKED)
def test_replacing_in_registers_and_one_by_one(name: str, number: int) -> None:
    pattern = encoding_of(name).pattern
    table = pattern.substitutes
    assert table is not None
    scanner = scanner_of(pattern)
    if use_tier(scanner, number) is None:
        pytest.skip("this processor has no more tiers")
    rng = random.Random(name)
    for _ in range(200):
        text = random_text(rng, rng.choice([1, 20, 63, 64, 65, 300, 900]))
        data = text.encode()[:2000]
        expected = replaced(table, data.decode("utf-8", "ignore")).encode()
        found = substitute(scanner, data, 0, len(data)).tobytes()
        # A character that is cut off stays as it is.
        assert found == expected + data[len(expected) :]


@pytest.mark.parametrize("name", PACKED)
def test_replacing_what_is_no_text(name: str) -> None:
    """Both ways agree on any bytes, wherever they begin and end."""
    scanners = [scanner_of(encoding_of(name).pattern) for _ in range(2)]
    use_tier(scanners[1], 1)
    rng = random.Random(name)
    odd = [*range(256), *[0x80, 0xBF, 0xC2, 0xD0, 0xE0, 0xE4, 0xED, 0xEF, 0xF0, 0xF4] * 30]
    for _ in range(300):
        data = bytearray(random_text(rng, 700).encode())
        for _ in range(rng.choice([0, 3, 400])):
            data[rng.randrange(len(data))] = rng.choice(odd)
        start = rng.randrange(200)
        size = rng.randrange(min(len(data) - start, 2000))
        first, second = (substitute(scanner, data, start, size) for scanner in scanners)
        np.testing.assert_array_equal(first, second, data.hex())
