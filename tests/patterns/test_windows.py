"""What windows decide is so; `tests/core/test_fast_paths.py` asks each tier of the core."""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamtok._core._testing import marks
from streamtok.patterns.pattern import Pattern

from ..conftest import scanner_of
from ..core.test_fast_paths import SPLITS, starts_of

LETTERS = " \nae'stx1.b/(cdn"
# In each, something ends rows, follows a trigger, or nearly does.
MORE = [
    r"\s*[\r\n]+|\s+(?!\S)|\s+|'(?i:[sdmt]|ll|ve|re)|\w+|[^\w\s]",
    r"a+b|a+(?!c)|a|b|c|[^abc]",
    r"a{3}b|a|b|[^ab]",
    r"(?:aa)+b|a|b|[^ab]",
    r"(?:aa)+b|(?:aaa)+c|a|b|c|[^abc]",
    r"a{1,4}b|c?a+(?!d)|a|[^a]",
    r"b\s+c|\s+(?=c)|\s+|[a-c]|[^a-c\s]",
    r" ?'[st]|'t|\w+|\s|[^\w\s]",
    r"\.'s|\.'|'[st]?|[a-z]+|[^a-z]",
    r"'s'|'s|'[a-z]|[a-z]+|[^a-z']",
    r"x'[st]|[a-z]+|'|[^a-z']",
    r"n\s+bc|n|\s+|[a-z]|[^a-z\s]",  # b does not end a row for sure
    r"n\s{3}b|n|\s+|[a-z]|[^a-z\s]",  # only after some lengths
    r"n\s{4}b|n|\s+|[a-z]|[^a-z\s]",
]


@pytest.mark.parametrize("source", [*SPLITS, *MORE])
def test_windows_say_what_is_so(source: str) -> None:
    """In texts of few letters: rows and triggers, with what comes before and behind them."""
    pattern = Pattern.compile(source)
    if pattern.windows is None:
        return
    kinds = {pattern.class_of(ord(char)): char for char in reversed(LETTERS)}
    rng = random.Random(source)
    scanner, decided = scanner_of(pattern), 0
    for _ in range(150):
        some = rng.choices([*kinds.values()], k=rng.choice([1, 2, 3, 6])) + rng.choices(
            LETTERS, k=2
        )
        text = "".join(char * rng.choice([1, 1, 1, 2, 3, 6]) for char in rng.choices(some, k=200))
        blocks = (len(text) - 9) // 64
        begins, is_open = (
            np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
            for words in marks(scanner, text.encode(), 8, blocks)
        )
        truth = starts_of(source, text)[8 : 8 + 64 * blocks]
        assert (begins == truth)[~is_open].all(), text
        decided += int((~is_open).sum())
    assert decided


def test_what_is_skipped_is_told_by_the_first_character() -> None:
    for source in (r"\w+|[^\w\s]+", r"\d{1,3}|[a-z]+"):
        pattern = Pattern.compile(source)
        closed = pattern.closed
        assert not pattern.is_total
        assert closed is not None
        assert closed.is_total
        assert [pattern.begins[pattern.class_of(ord(c))] for c in "a "] == [True, False]
        assert closed.findall("ab  1!") == [*pattern.findall("ab"), " ", " ", "1", "!"]
    assert Pattern.compile("ab|b").closed is None  # after an a it depends on more
    assert Pattern.compile(r"\s+|\S+").closed.is_total
