"""Every call on every kind of tokenizer: as in tokenizers."""

from __future__ import annotations

import functools

import pytest
from tokenizers import Tokenizer

import streamtok.hf

from .shapes import KINDS, TEXTS, differences


@functools.cache
def written(kind: str) -> str:
    """The tokenizer.json of this kind."""
    json: str = KINDS[kind]().to_str()
    return json


@pytest.mark.parametrize("kind", KINDS)
def test_all_calls(kind: str) -> None:
    ours = streamtok.hf.Tokenizer.from_str(written(kind))
    n, found = differences(ours, Tokenizer.from_str(written(kind)), TEXTS, every=9)
    assert found == []
    assert n > 150


@pytest.mark.parametrize("kind", KINDS)
def test_streamtok_encodes(kind: str) -> None:
    ours = streamtok.hf.Tokenizer.from_str(written(kind))
    assert (ours.engine, ours.reason) == ("streamtok", None)
