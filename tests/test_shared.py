"""Extra: what other tests check on text that they make, on files that lie beside the project.

`conftest.py` collects this file only where `../shared` is there. Every check here is also a test on
text of any machine's own.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from .api.test_chunker import check_all_chunk_sizes, check_every_chunk_size
from .conftest import CORPORA, PACKED, SHARED, encoding_of
from .patterns.test_pattern import check_split
from .training.test_merging import check_against_hugging_face, check_against_rustbpe


def shared(name: str) -> bytes:
    return (SHARED / "corpus" / f"{name}.txt").read_bytes()


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("text", CORPORA)
def test_streams(name: str, text: str) -> None:
    check_every_chunk_size(name, shared(text))


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("text", CORPORA)
def test_whole_texts(name: str, text: str) -> None:
    data = shared(text)
    enc = encoding_of(name)
    ids = enc.encode(data.decode(), disallowed_special=())
    assert enc.decode(ids) == enc.decode(iter(ids)) == data.decode()
    assert enc.decode_bytes(ids) == enc.decode_bytes(np.array(ids)) == data


@pytest.mark.parametrize("name", ["r50k", "cl100k", "o200k"])
@pytest.mark.parametrize("text", CORPORA)
def test_split(name: str, text: str) -> None:
    check_split(name, shared(text))


def test_cascades() -> None:
    cases = json.loads((SHARED / "vectors" / "cascade.json").read_text("utf-8"))["cases"]
    for case in cases:
        for text, ids in [("text", "ids"), ("shorter", "shorter_ids")]:
            check_all_chunk_sizes(case["encoding"], case[text].encode(), case[ids])


def test_merges_equal_rustbpe() -> None:
    check_against_rustbpe([shared(name).decode() for name in CORPORA], 32_768)


def test_merges_equal_hugging_face() -> None:
    check_against_hugging_face([shared("english").decode()])
