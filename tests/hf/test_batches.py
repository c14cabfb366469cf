"""Calls that patched transformers answers at once: lists and matrices as with tokenizers."""

from __future__ import annotations

import itertools
import logging
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import transformers

from streamtok.engines import texts as whole_texts
from streamtok.hf import (
    accelerate,
    batches,
    patched_transformers,
    patching,
    unpatch_transformers,
)
from streamtok.hf.batches import answer

from ..live_threads import together
from .shapes import TEXTS, raised
from .test_transformers import folder, plain

KINDS = ["gpt2", "roberta", "trimmed", "llama2", "bert", "unigram"]
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
MADE = 8  # so many of these are answered at once, with `return_tensors` and without it
SIMPLE = [
    {},
    {"add_special_tokens": False},
    {"return_token_type_ids": True, "return_attention_mask": False},
    {"return_offsets_mapping": True, "add_special_tokens": False, "split_special_tokens": True},
]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether streamtok answered each call."""
    calls: list[bool] = []

    def spy(*given: Any) -> Any:
        found = batches.answer(*given)
        calls.append(found is not None)
        return found

    monkeypatch.setattr(patching, "answer", spy)
    with patched_transformers():
        yield calls


@pytest.mark.parametrize("kind", KINDS)
def test_answers(kind: str, made: list[bool]) -> None:
    ours, theirs = both(kind)
    for side in ("right", "left"):
        ours.truncation_side = theirs.truncation_side = side
        cases = itertools.product((TEXTS, ONE_LENGTH, TEXTS[3]), SETTINGS, ("np", None))
        for texts, settings, tensors in cases:
            given = {**settings, "return_tensors": tensors}
            expected = raised(lambda t=texts, g=given: plain(theirs(t, **g)))
            del made[:]
            found = raised(lambda t=texts, g=given: plain(ours(t, **g)))
            assert repr(found) == repr(expected), (side, texts, settings)  # lists of arrays
            if SETTINGS.index(settings) < MADE and "max_length" not in settings:
                assert made == [True]


@pytest.mark.parametrize("kind", KINDS)
def test_simple_answers(kind: str, made: list[bool]) -> None:
    ours, theirs = both(kind)
    for texts, settings in itertools.product((TEXTS, tuple(ONE_LENGTH), TEXTS[3], ""), SIMPLE):
        ours("x", padding="max_length", max_length=9, truncation=True)  # leaves no trace
        del made[:]
        found = plain(ours(texts, **settings))
        assert repr(found) == repr(plain(theirs(texts, **settings))), (texts, settings)
        assert made == [True]
    assert repr(raised(lambda: ours([]))) == repr(raised(lambda: theirs([])))


def test_texts_that_are_too_long_are_warned_of(
    made: list[bool], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    said = []
    for tokenizer in both("bert"):
        tokenizer.model_max_length = 5
        for texts in (["a", "a b c d e f", "a b c d e f g"], "a b c d e f"):
            tokenizer.deprecation_warnings.clear()
            caplog.clear()
            tokenizer(texts)
            said.append([record.getMessage() for record in caplog.records])
    assert made == [True, True]
    assert said[:2] == said[2:]
    assert all(said)


def test_classes_that_answer_calls_themselves(made: list[bool]) -> None:
    class Own(transformers.PreTrainedTokenizerFast):
        def _encode_plus(self, *args: Any, **options: Any) -> Any:
            return "mine"

        _batch_encode_plus = _encode_plus

    tokenizer = Own.from_pretrained(folder("gpt2"))
    assert tokenizer.backend_tokenizer.engine == "streamtok"
    assert tokenizer("a b") == tokenizer(["a b"]) == "mine"
    assert made == []


def both(kind: str) -> tuple[Any, Any]:
    """A tokenizer with streamtok's engine, and the same one with tokenizers'."""
    ours = transformers.AutoTokenizer.from_pretrained(folder(kind))
    assert ours.backend_tokenizer.engine == "streamtok"
    real = ours.backend_tokenizer.real
    names = ("bos_token", "eos_token", "unk_token", "pad_token")
    special = {name: getattr(ours, name) for name in names}
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=real, **special)
    theirs._tokenizer = theirs._tokenizer.real  # its constructor is patched, too
    return ours, theirs


def test_a_tokenizer_that_is_accelerated(monkeypatch: pytest.MonkeyPatch) -> None:
    method = {**vars(transformers.PreTrainedTokenizerFast)}
    theirs = transformers.AutoTokenizer.from_pretrained(folder("gpt2"))
    ours = accelerate(transformers.AutoTokenizer.from_pretrained(folder("gpt2")))
    calls: list[Any] = []
    monkeypatch.setattr(
        patching, "answer", lambda *given: calls.append(answer(*given)) or calls[-1]
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


def test_large_batches(made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads share the texts."""
    monkeypatch.setattr(whole_texts, "PER_THREAD", 50)
    monkeypatch.setattr(whole_texts, "usable_cores", lambda: 3)
    monkeypatch.setattr(batches, "threads", lambda: 3)
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
    assert together(*[lambda: [one.ids for one in found.encodings]] * 4) == [rows] * 4
    for one in found.encodings:
        assert [part.ids for part in one.overflowing] == [
            part.ids for part in pickle.loads(pickle.dumps(one)).overflowing
        ]
    fresh = tokenizer(["a"], padding=True, return_tensors="np").encodings[0]
    assert pickle.loads(pickle.dumps(fresh)).ids == fresh.ids
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _ = fresh.other
