"""Budgets: `fits`, `truncate` and `encode(max_tokens=)` against trying everything."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok

from ..oracles import cut
from .slowly import (
    any_encoding,
    any_settings,
    any_text,
    as_given,
    truncated,
    with_rules,
)

CL100K = streamtok.get_encoding("cl100k_base")
SEEDS = st.integers(0, 1 << 40)


@settings(max_examples=150)
@given(seed=SEEDS, side=st.sampled_from(["right", "left"]))
def test_truncate_is_the_longest_side_that_fits(seed: int, side: str) -> None:
    rng = random.Random(seed)
    encoding, letters = any_encoding(rng)
    how = any_settings(rng, encoding)
    text = as_given(rng, any_text(rng, letters))
    least = len(encoding.encode("", **how))
    budget = least + rng.choice([0, 1, 2, 3, rng.randint(1, 60)])
    expected = truncated(encoding, text, budget, side, how)
    call: Any = encoding.truncate
    assert call(text, budget, side, **how) == expected
    if side == "right":
        given_in_parts = cut(rng, text) or [text]
        assert call(given_in_parts, budget, **how) == expected
    if least:
        assert not encoding.fits(text, least - 1, **how)
        with pytest.raises(ValueError, match=f"max_tokens must be at least {least}, not 1: "):
            encoding.truncate(text, 1, **how)
    assert encoding.fits(text, budget, **how) is not expected[2]
    assert encoding.fits(cut(rng, text), budget, **how) is not expected[2]


@settings(max_examples=150)
@given(seed=SEEDS, budget=st.integers(0, 80))
def test_max_tokens_gives_the_first_ids(seed: int, budget: int) -> None:
    rng = random.Random(seed)
    encoding, letters = any_encoding(rng)
    how = any_settings(rng, encoding)
    text = as_given(rng, any_text(rng, letters))
    assert encoding.encode(text, max_tokens=budget, **how) == encoding.encode(text, **how)[:budget]
    ordinary = encoding.encode_ordinary(text, errors=how["errors"])
    assert (
        encoding.encode_ordinary(text, errors=how["errors"], max_tokens=budget)
        == (ordinary[:budget])
    )


def test_long_runs_without_a_cut() -> None:
    """Where every end must be tried, the lower bound spares most of them."""
    for encoding, unit in [
        (CL100K, "日本語"), (CL100K, "ab"), (CL100K, "x"), (CL100K, " "),
        (with_rules(1, "spaces"), "ab "), (with_rules(3, "spaces"), "aab"),
    ]:  # fmt: skip
        text = unit * (400 // len(unit))
        for budget, side in itertools.product((1, 7, 40), ("left", "right")):
            expected = truncated(encoding, text, budget, side, {"disallowed_special": ()})
            assert encoding.truncate(text, budget, side) == expected


def test_it_reads_no_further_than_it_must() -> None:
    """A source without an end, and a disallowed special token far behind."""
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        for i in itertools.count():
            read += 1
            yield f"line {i} of many\n"

    assert not CL100K.fits(endless(), 100)
    assert CL100K.truncate(endless(), 100).n_tokens == 100
    assert read < 300
    far = "word " * 10_000 + "<|endoftext|>"
    assert CL100K.encode(far, max_tokens=5) == CL100K.encode("word " * 10)[:5]
    assert CL100K.truncate(far, 5, disallowed_special="all").n_tokens == 5
    with pytest.raises(ValueError, match="byte 50000"):
        CL100K.truncate(far, 5, "left", disallowed_special="all")


def test_a_large_text_takes_as_little_work_as_a_small_one() -> None:
    """Counted in processor time, with a hundredfold margin: all of it would be read otherwise."""
    text = "The quick brown fox, it jumps. " * 1_000_000
    begin = time.process_time()
    assert CL100K.truncate(text, 64)[1:] == (64, True)
    assert not CL100K.fits(text, 64)
    assert len(CL100K.encode(text, max_tokens=64)) == 64
    few = time.process_time() - begin
    begin = time.process_time()
    CL100K.count(text)
    assert few < time.process_time() - begin


def test_a_spent_budget_is_ordinary() -> None:
    for text, nothing in (("text", ""), (b"text", b""), (["te", "xt"], "")):
        assert not CL100K.fits(text, 0)
        assert CL100K.truncate(text, 0) == (nothing, 0, True)
        assert CL100K.fits(text[:0], 0)
        assert CL100K.truncate(text[:0], 0) == (nothing, 0, False)
    assert CL100K.truncate("text", 0, "left") == ("", 0, True)
    assert CL100K.encode("text", max_tokens=0) == CL100K.encode_ordinary("text", max_tokens=0) == []


def test_a_wrong_side_is_refused_before_the_text_is_read() -> None:
    chunks = iter(["one ", "two"])
    with pytest.raises(ValueError, match="side must be"):
        streamtok.get_encoding("gpt2").truncate(chunks, 3, "top")
    assert next(chunks) == "one "
