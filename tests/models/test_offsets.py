"""Models like BERT's, T5's and ALBERT's: offsets, and what they do not have."""

from __future__ import annotations

import functools
import unicodedata

import pytest
from tokenizers import Tokenizer, pre_tokenizers

import streamtok
from streamtok.answers.views.merges import trace_merges

from ..hf.shapes import KINDS, TEXTS
from ..oracles import PLAIN

SAMPLES = [
    *TEXTS, *PLAIN,
    "Streams of text: naïve café, 日本語 and unaffable “quotes” [SEP] don't x\u0301 "
    f"{'z' * 150} 😀 \u00a0 end\tof  it. <mask>",
]  # fmt: skip
MARKS = pre_tokenizers.Metaspace()

Made = tuple[streamtok.Encoding, Tokenizer]


@functools.cache
def pair_of(name: str) -> Made:
    tokenizer = KINDS["unigram" if name == "t5" else name]()
    if name == "t5":
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), MARKS])
    return streamtok.load(tokenizer), tokenizer


@pytest.fixture(params=["bert", "t5", "unigram", "word_level"])
def made(request: pytest.FixtureRequest) -> Made:
    return pair_of(request.param)


def test_offsets(made: Made) -> None:
    encoding, tokenizer = made
    for text in SAMPLES:
        expected = tokenizer.encode(text, add_special_tokens=False)
        ids, spans = encoding.encode_with_offsets(text, allowed_special="all")
        assert ids.tolist() == expected.ids
        for (start, end), other in zip(spans.tolist(), expected.offsets, strict=True):
            # A mark that is left out goes with its letter here, and is in no span there.
            assert start == other[0], text
            assert end >= other[1], text
            left_out = text[other[1] : end]
            assert {"Mn", "Cf"}.issuperset(map(unicodedata.category, left_out)), text


def test_what_such_models_do_not_have(made: Made) -> None:
    encoding, _ = made
    with pytest.raises(ValueError, match="merges nothing"):
        trace_merges(encoding, "hello")
    with pytest.raises(ValueError, match="encode_with_unstable"):
        encoding.encode_with_unstable("hello")
