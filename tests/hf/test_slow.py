"""Tokenizers that are written in Python over tiktoken, as Kimi's: streamtok in tiktoken's place."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import transformers

import streamtok
from streamtok.hf import accelerate, patched_transformers

from ..patterns.test_pattern import REAL
from .shapes import TEXTS

RANKS = streamtok.get_encoding("gpt2")._mergeable_ranks
PATTERN = REAL["kimi"]


class OverTiktoken(transformers.PreTrainedTokenizer):  # type: ignore[misc]
    """Tokens are ids in decimal."""

    vocab_files_names: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, pattern: str = PATTERN, **kwargs: Any) -> None:
        self.model = tiktoken.Encoding(
            "kimi", pat_str=pattern, mergeable_ranks=RANKS, special_tokens={"[EOS]": 60_000}
        )
        super().__init__(pattern=pattern, **kwargs)

    @property
    def vocab_size(self) -> int:
        return self.model.n_vocab

    def get_vocab(self) -> dict[str, int]:
        return {}

    def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
        ids = self.model.encode(text, allowed_special="all", disallowed_special=())
        return [str(id) for id in ids]

    def _convert_token_to_id(self, token: str) -> int:
        return int(token)

    def _convert_id_to_token(self, index: int) -> str:
        return str(index)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return self.model.decode([int(token) for token in tokens])

    def save_vocabulary(self, *args: Any, **kwargs: Any) -> tuple[str, ...]:
        return ()


def check(ours: Any, real: Any) -> None:
    assert type(real.model) is tiktoken.Encoding
    for text in (*TEXTS, "漢字とHello漢字's [EOS]"):
        ids = real(text).input_ids
        assert ours(text).input_ids == ids
        assert ours.decode(ids) == real.decode(ids)
    assert ours.model.n_vocab == real.model.n_vocab


def test_one_tokenizer() -> None:
    ours = accelerate(OverTiktoken())
    assert type(ours.model) is streamtok.Encoding
    check(ours, OverTiktoken())
    check(copy.deepcopy(ours), OverTiktoken())
    check(pickle.loads(pickle.dumps(ours)), OverTiktoken())


def test_what_is_loaded(tmp_path: Path) -> None:
    OverTiktoken().save_pretrained(tmp_path)
    with patched_transformers():
        ours = OverTiktoken.from_pretrained(tmp_path)
    assert type(ours.model) is streamtok.Encoding
    check(ours, OverTiktoken.from_pretrained(tmp_path))


def test_what_has_no_encoding_is_left(caplog: pytest.LogCaptureFixture) -> None:
    real = OverTiktoken()
    real.model._special_tokens = {"[EOS]": -1}  # which no encoding has
    held = real.model
    assert accelerate(real).model is held
    assert "tokenizers encodes, not streamtok: " in caplog.text
