"""`return_tensors` in patched transformers: matrices as with tokenizers, made of no lists."""

from __future__ import annotations

import itertools
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import transformers

from streamtok.hf import (
    accelerate,
    matrices,
    patched_transformers,
    patching,
    unpatch_transformers,
)
from streamtok.hf.matrices import as_matrix

from .shapes import TEXTS, raised
from .test_transformers import folder, plain

KINDS = ["gpt2", "roberta", "llama2", "bert", "unigram"]
ONE_LENGTH = ["ab", "ab"]
SETTINGS = [
    {"padding": True},
    {"padding": "max_length", "max_length": 40, "truncation": True},
    {"padding": True, "pad_to_multiple_of": 8, "padding_side": "left"},
    {"padding": True, "truncation": True, "max_length": 9, "stride": 2},
    {"padding": True, "add_special_tokens": False, "return_attention_mask": False},
    {"padding": True, "return_token_type_ids": True, "padding_side": "left"},
    {"padding": True, "split_special_tokens": True},
    {"truncation": True, "max_length": 1},
    {"padding": "max_length", "max_length": 3},
    {"padding": True, "return_offsets_mapping": True},
    {"padding": True, "return_special_tokens_mask": True},
    {"padding": True, "truncation": True, "max_length": 9, "return_overflowing_tokens": True},
    {},
]  # fmt: skip
MADE = 8  # so many of these need nothing but matrices


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether streamtok made the matrices of each call."""
    calls: list[bool] = []

    def spy(*given: Any) -> Any:
        found = matrices.as_matrix(*given)
        calls.append(found is not None)
        return found

    monkeypatch.setattr(patching, "as_matrix", spy)
    with patched_transformers():
        yield calls


@pytest.mark.parametrize("kind", KINDS)
def test_matrices(kind: str, made: list[bool]) -> None:
    ours = transformers.AutoTokenizer.from_pretrained(folder(kind))
    assert ours.backend_tokenizer.engine == "streamtok"
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=ours.backend_tokenizer.real, **special_tokens(ours)
    )
    for side in ("right", "left"):
        ours.truncation_side = theirs.truncation_side = side
        for texts, settings in itertools.product((TEXTS, ONE_LENGTH, TEXTS[3]), SETTINGS):
            given = {**settings, "return_tensors": "np"}
            expected = raised(lambda t=texts, g=given: plain(theirs(t, **g)))
            del made[:]
            found = raised(lambda t=texts, g=given: plain(ours(t, **g)))
            assert repr(found) == repr(expected), (side, texts, settings)  # lists of arrays
            if SETTINGS.index(settings) < MADE and "max_length" not in settings:
                assert made == [True]
    assert not any(made[:-1])


def test_a_tokenizer_that_is_accelerated(monkeypatch: pytest.MonkeyPatch) -> None:
    method = {**vars(transformers.PreTrainedTokenizerFast)}
    theirs = transformers.AutoTokenizer.from_pretrained(folder("gpt2"))
    ours = accelerate(transformers.AutoTokenizer.from_pretrained(folder("gpt2")))
    calls: list[Any] = []
    monkeypatch.setattr(
        patching, "as_matrix", lambda *given: calls.append(as_matrix(*given)) or calls[-1]
    )
    given: dict[str, Any] = {"padding": True, "return_tensors": "np"}
    try:
        assert plain(ours(TEXTS, **given)) == plain(theirs(TEXTS, **given))
        assert len(calls) == 1
        assert calls[0] is not None
    finally:
        unpatch_transformers()
    assert vars(transformers.PreTrainedTokenizerFast) == method
    assert plain(ours(TEXTS, **given)) == plain(theirs(TEXTS, **given))
    assert len(calls) == 1


def special_tokens(tokenizer: Any) -> dict[str, str]:
    return {name: getattr(tokenizer, name) for name in ("bos_token", "eos_token", "unk_token",
                                                        "pad_token")}  # fmt: skip


def test_large_batches(made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads share the texts."""
    monkeypatch.setattr(matrices, "_PER_THREAD", 50)
    monkeypatch.setattr(matrices, "threads", lambda: 3)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder("gpt2"))
    texts = [*TEXTS, "", "x" * 500] * 5
    found = tokenizer(texts, padding=True, return_tensors="np")
    assert made == [True]
    assert found.input_ids.tolist() == tokenizer(texts, padding=True).input_ids


def test_encodings_that_are_looked_at_later(made: list[bool]) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder("gpt2"))
    found = tokenizer(
        TEXTS, padding=True, truncation=True, max_length=9, stride=2, return_tensors="np"
    )
    assert made == [True]
    tokenizer.add_tokens(["Hello"])  # they stay what they were
    rows = found.input_ids.tolist()
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append([one.ids for one in found.encodings]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [rows] * 4
    for one in found.encodings:
        assert [part.ids for part in one.overflowing] == [
            part.ids for part in pickle.loads(pickle.dumps(one)).overflowing
        ]
    fresh = tokenizer(["a"], padding=True, return_tensors="np").encodings[0]
    assert pickle.loads(pickle.dumps(fresh)).ids == fresh.ids
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _ = fresh.other
