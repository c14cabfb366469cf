"""ASCII in the place of other characters: pre-tokens begin at the same characters."""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamtok.patterns.pattern import Pattern

from ..conftest import PACKED, encoding_of
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
