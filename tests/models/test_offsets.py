"""Models like BERT's, T5's and ALBERT's: offsets, budgets, and what they do not have."""

from __future__ import annotations

import functools
import unicodedata
from itertools import pairwise
from typing import Any

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
LONG = " ".join(SAMPLES)
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


def test_budgets(made: Made) -> None:
    encoding, _ = made
    text = LONG
    plain: dict[str, Any] = {"disallowed_special": ()}
    n_tokens = encoding.count(text, **plain)
    assert encoding.fits(text, n_tokens, **plain)
    assert not encoding.fits(text, n_tokens - 1, **plain)
    for side in ("right", "left"):
        cut = encoding.truncate(text, 40, side=side, **plain)
        assert text.startswith(cut.text) if side == "right" else text.endswith(cut.text)
        assert encoding.count(cut.text, **plain) == cut.n_tokens <= 40
    chunks = list(encoding.split(text, 50, overlap=5, **plain))
    assert (chunks[0].start, chunks[-1].stop) == (0, len(text))
    assert all(other.start <= chunk.stop for chunk, other in pairwise(chunks))
    for chunk in chunks:
        assert text[chunk.start : chunk.stop] == chunk.text
        assert encoding.count(chunk.text, **plain) == chunk.n_tokens <= 50
    document = encoding.document(text[:900])
    document.replace(300, 390, "\u0301 streams\n\nun")
    assert document.ids == encoding.encode(
        f"{text[:300]}\u0301 streams\n\nun{text[390:900]}", **plain
    )


def test_what_such_models_do_not_have(made: Made) -> None:
    encoding, _ = made
    with pytest.raises(ValueError, match="merges nothing"):
        trace_merges(encoding, "hello")
    with pytest.raises(ValueError, match="encode_with_unstable"):
        encoding.encode_with_unstable("hello")
