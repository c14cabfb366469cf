"""The parallel text, and counts in it."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import streamtok
from streamtok.answers.views.languages import compare_languages, list_languages


def test_the_text_is_whole_and_small():
    languages = list_languages()
    assert len(languages) >= 40
    assert len({one.code for one in languages}) == len(languages)
    assert [one.name for one in languages] == sorted(one.name for one in languages)
    for code, _, text in languages:
        assert text.count("\n") == 4, code  # a paragraph a line, the same in each language
        assert text.endswith("\n")
        assert not any(unicodedata.category(c) == "Cc" and c != "\n" for c in text)
    english = {one.code: one.text for one in languages}["en"]
    assert english.startswith("All human beings are born free and equal in dignity and rights.")
    data = Path(streamtok.__file__).parent / "data" / "declaration.json"
    assert data.stat().st_size < 150_000


def test_counts_are_those_of_encode():
    encodings = [streamtok.get_encoding(name) for name in ("cl100k_base", "o200k_base")]
    table = compare_languages(encodings)
    texts = {one.code: one.text for one in list_languages()}
    assert [row.code for row in table.rows] == list(texts)
    english = [enc.count(texts["en"]) for enc in encodings]
    for row in table.rows:
        text = texts[row.code]
        assert row.tokens == [len(enc.encode(text)) for enc in encodings]
        assert (row.n_characters, row.n_bytes) == (len(text), len(text.encode()))
        assert row.tokens_per_character == [count / len(text) for count in row.tokens]
        assert row.tokens_per_byte == [count / len(text.encode()) for count in row.tokens]
        pairs = zip(row.tokens, english, strict=True)
        assert row.times_english == [count / most for count, most in pairs]
    assert json.loads(json.dumps(table.as_json())) == table.as_json()
