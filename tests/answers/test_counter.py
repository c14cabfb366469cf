"""The counter against whole texts, at every cut."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok

from ..oracles import cut
from .slowly import any_encoding, any_settings, any_text, as_given

CL100K = streamtok.get_encoding("cl100k_base")
PLAIN: dict[str, Any] = {"disallowed_special": ()}


@settings(max_examples=120)
@given(seed=st.integers(0, 1 << 40))
def test_totals_and_estimates_are_those_of_whole_texts(seed: int) -> None:
    rng = random.Random(seed)
    encoding, letters = any_encoding(rng)
    how = any_settings(rng, encoding)
    text = as_given(rng, any_text(rng, letters))
    try:
        counter = encoding.counter(**how)
    except streamtok.UnsupportedPatternError:
        return  # whole texts only
    so_far = text[:0]
    certain = 0
    for chunk in cut(rng, text):
        certain += counter.update(chunk)
        so_far += chunk
        assert counter.total == certain
        assert counter.estimate == len(encoding.encode(so_far, **how))
        if rng.random() < 0.1:
            counter = rng.choice([counter.copy, lambda c=counter: pickle.loads(pickle.dumps(c))])()
    expected = len(encoding.encode(text, **how))
    assert counter.finish() == counter.total == counter.finish() == counter.estimate == expected
    assert counter.pending == 0


def test_a_new_text_begins_after_the_end() -> None:
    counter = CL100K.counter()
    counter.update("one two three")
    assert counter.finish() == 3
    assert "3 tokens, 0 bytes pending" in repr(counter)
    again = pickle.loads(pickle.dumps(counter))
    assert (again.total, again.finish()) == (3, 3)
    assert counter.update("one two") == 1
    assert (counter.total, counter.estimate, counter.finish()) == (1, 2, 2)
    counter.reset()
    assert (counter.total, counter.pending, counter.finish()) == (0, 0, 0)


def test_special_tokens_are_plain_text_unless_allowed() -> None:
    text = "a<|endoftext|>b"
    assert CL100K.count(text, **PLAIN) == 9
    for how, expected in [({}, 9), ({"allowed_special": "all"}, 3)]:
        counter = CL100K.counter(**how)
        for char in text:
            counter.update(char)
        assert counter.finish() == expected
    counter = CL100K.counter(disallowed_special="all")
    counter.update("a")
    with pytest.raises(ValueError, match="at byte 1"):
        counter.update(text[1:])
    assert counter.update(" b c") == 2
    assert counter.finish() == 3


def test_a_failed_call_changes_nothing() -> None:
    counter = CL100K.counter(max_pending=40)
    counter.update(b"caf\xc3")
    state = counter._now[0].getstate()
    for bad, error in [
        ("x", UnicodeDecodeError), (b"\xff", UnicodeDecodeError), (7, TypeError),
        (b"\xa9" + b"x" * 99, streamtok.PendingLimitExceeded),
    ]:  # fmt: skip
        with pytest.raises(error):
            counter.update(bad)  # type: ignore[arg-type]
        assert counter._now[0].getstate() == state
    with pytest.raises(UnicodeDecodeError):
        counter.finish()
    assert counter._now[0].getstate() == state
    assert (counter.pending, counter.estimate) == (4, CL100K.count("caf"))
    counter.update("")
    counter.update(b"\xa9")
    assert counter.finish() == CL100K.count("café")
