"""Encodings by name: tiktoken's facts, and one object for each name."""

from __future__ import annotations

import importlib
import urllib.error
import urllib.request
from typing import Any

import pytest

from streamtok import registry
from streamtok.errors import VocabularyError
from streamtok.registry import (
    encoding_for_model,
    encoding_name_for_model,
    get_encoding,
    list_encoding_names,
)
from streamtok.vocabulary.table import Vocabulary

# tiktoken's names, and how many ids each has
SIZES = {
    "gpt2": 50257, "r50k_base": 50257, "p50k_base": 50281, "p50k_edit": 50284,
    "cl100k_base": 100277, "o200k_base": 200019, "o200k_harmony": 201088,
}  # fmt: skip
NAMES = list(SIZES)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(f"a test wants the network: {arguments}")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(registry, "ENCODINGS", {})


def tiktoken_module(name: str) -> Any:
    """Import a module of the tiktoken version whose facts we copy; later ones know more models."""
    if not pytest.importorskip("tiktoken").__version__.startswith("0.14."):
        pytest.skip("the facts are those of tiktoken 0.14")
    return importlib.import_module(name)


# Names and their encodings


def test_names() -> None:
    assert list_encoding_names() == NAMES
    list_encoding_names().clear()
    assert list_encoding_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_definitions_are_tiktoken_s(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the ranks, which `test_vocabulary.py` compares with the published ones."""
    tiktoken_s = tiktoken_module("tiktoken_ext.openai_public")
    monkeypatch.setattr(tiktoken_s, "load_tiktoken_bpe", lambda *_, **__: {})
    monkeypatch.setattr(tiktoken_s, "data_gym_to_mergeable_bpe_ranks", lambda *_, **__: {})
    assert list(tiktoken_s.ENCODING_CONSTRUCTORS) == NAMES
    expected = tiktoken_s.ENCODING_CONSTRUCTORS[name]()
    made = get_encoding(name)
    assert (made.name, made._pat_str) == (name, expected["pat_str"])
    assert made._special_tokens == expected["special_tokens"]
    assert made.n_vocab == expected.get("explicit_n_vocab", SIZES[name]) == SIZES[name]
    ids = {
        "cl100k_base": [15339, 1917],
        "o200k_base": [24912, 2375],
        "o200k_harmony": [24912, 2375],
    }
    assert made.encode("hello world") == ids.get(name, [31373, 995])


def test_models_are_tiktoken_s() -> None:
    tiktoken_s = tiktoken_module("tiktoken.model")
    assert registry.MODEL_TO_ENCODING == tiktoken_s.MODEL_TO_ENCODING
    # in the same order, because the first prefix that fits counts
    expected = list(tiktoken_s.MODEL_PREFIX_TO_ENCODING.items())
    assert list(registry.MODEL_PREFIX_TO_ENCODING.items()) == expected


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"Unknown encoding cl100k: expected one of gpt2, "):
        get_encoding("cl100k")
    for wrong in (None, b"gpt2", 5, ["gpt2"]):
        with pytest.raises(ValueError, match=r"Expected a string in get_encoding, got <class"):
            get_encoding(wrong)  # type: ignore[arg-type]
    for model in ("gpt-9", "", "GPT-4"):
        with pytest.raises(KeyError, match=r"Could not automatically map .*streamtok.get_encoding"):
            encoding_name_for_model(model)
        with pytest.raises(KeyError):
            encoding_for_model(model)


# One object for each name


def test_one_object_and_one_vocabulary() -> None:
    made = {name: get_encoding(name) for name in NAMES}
    assert all(get_encoding(name) is encoding for name, encoding in made.items())
    assert encoding_for_model("gpt-4") is made["cl100k_base"]
    tables = {name: encoding.definition.vocabulary for name, encoding in made.items()}
    assert tables["gpt2"] is tables["r50k_base"]
    assert tables["o200k_base"] is tables["o200k_harmony"]


def test_a_failure_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> Vocabulary:
        raise VocabularyError("not now")

    with monkeypatch.context() as patch:
        patch.setattr(registry, "_vocabulary", fail)
        with pytest.raises(VocabularyError, match="not now"):
            get_encoding("gpt2")
    assert get_encoding("gpt2").name == "gpt2"
