"""Comparisons: boundaries found in another way."""

from __future__ import annotations

import itertools
import json

import pytest

import streamtok
from streamtok.answers.views.comparison import compare_encodings

TEXT = "Hello 東京, tokenization naïve 🎉🎉 12345\n\tétat <|endoftext|>"
NAMES = ["r50k_base", "cl100k_base", "o200k_base", "gpt2"]


def ends(enc: streamtok.Encoding, text: str) -> set[int]:
    """Where tokens end, by adding their sizes up."""
    ids = enc.encode(text, disallowed_special=())
    return {*itertools.accumulate(len(enc.decode_single_token_bytes(id)) for id in ids)}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_boundaries(count):
    encodings = [streamtok.get_encoding(name) for name in NAMES[:count]]
    found = compare_encodings(encodings, TEXT)
    sets = [ends(enc, TEXT) for enc in encodings]
    common = set.intersection(*sets)
    assert (found.agreeing, found.boundaries) == (len(common), len(set.union(*sets)))
    assert found.differing == len(set.union(*sets) - common)
    assert [one.stop for one in found.segments] == sorted(common)
    assert [one.start for one in found.segments] == [0, *sorted(common)[:-1]]
    for at, enc in enumerate(encodings):
        column = found.columns[at]
        assert column.ids == enc.encode(TEXT, disallowed_special=())
        assert sum(one.counts[at] for one in found.segments) == column.n_tokens
        for segment in found.segments:
            inside = [end for end in sets[at] if segment.start < end <= segment.stop]
            assert segment.counts[at] == len(inside)
    for segment in found.segments:
        has_more = any(segment.start < end < segment.stop for end in set.union(*sets))
        assert segment.is_same != has_more
    assert json.loads(json.dumps(found.as_json())) == found.as_json()


def test_bytes_and_odd_texts():
    encodings = [streamtok.get_encoding(name) for name in ("gpt2", "cl100k_base")]
    assert compare_encodings(encodings, "").segments == []
    data = b"a\xff\xe6b"
    with pytest.raises(UnicodeDecodeError):
        compare_encodings(encodings, data)
    found = compare_encodings(encodings, data, errors="surrogateescape")
    assert "".join(one.shown for one in found.segments) == "a<FF><E6>b"


def test_how_many():
    enc = streamtok.get_encoding("gpt2")
    for wrong in ([], [enc] * 5):
        with pytest.raises(ValueError, match="1 to 4"):
            compare_encodings(wrong, "a")
