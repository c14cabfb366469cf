"""The benchmark of growing prompts: all take part, and the overlap's wrong answers are found."""

from __future__ import annotations

import pytest

import streamtok
from benchmarks import corpus, prompts


def test_all_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "GUESSES", 100)
    text = corpus.generated("multilingual").decode("utf-8", "ignore")
    row = prompts.measure(streamtok.get_encoding("o200k_base"), text, 5000, 2)
    assert all(value > 0 for value in row)
    assert row.token_bytes < 64


def test_the_overlap_is_wrong_where_a_cut_changes_the_ids() -> None:
    gpt2 = streamtok.get_encoding("gpt2")
    guess = prompts.Overlap(gpt2)
    for text in ("a b c d e f g h i j", "a b c d e f g h i j k"):
        assert guess.encode(text) == gpt2.encode(text)
    text = corpus.generated("multilingual").decode("utf-8", "ignore")
    assert prompts.wrong_guesses(gpt2, text, 100) > 0
