"""Models like BERT's, T5's and ALBERT's: offsets, budgets, and what they do not have."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer

import streamtok
from streamtok.views.merges import trace_merges

from .trained import MODELS, TEXT, corpus

Made = tuple[streamtok.Encoding, Tokenizer]


@pytest.fixture(params=MODELS)
def made(request: pytest.FixtureRequest) -> Made:
    make: Callable[[], Made] = MODELS[request.param]
    return make()


def test_offsets(made: Made) -> None:
    encoding, tokenizer = made
    for text in [*corpus()[:200], TEXT]:
        expected = tokenizer.encode(text, add_special_tokens=False)
        ids, spans = encoding.encode_with_offsets(text, allowed_special="all")
        assert ids.tolist() == expected.ids
        if not isinstance(tokenizer.normalizer, BertNormalizer):
            assert [*map(tuple, spans.tolist())] == expected.offsets, text
            continue
        for (start, end), other in zip(spans.tolist(), expected.offsets, strict=True):
            # An accent that is left out goes with its letter here, and is in no span there.
            assert start == other[0], text
            assert end >= other[1], text
            assert all(map(unicodedata.combining, text[other[1] : end])), text


def test_budgets(made: Made) -> None:
    encoding, _ = made
    text = "\n".join(corpus()[:60])
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
