"""Extra: what other tests check on text that they make, on the files that are given.

`conftest.py` collects this file only where STREAMTOK_CORPUS names their folder. Every check here is
also a test on text of any machine's own.
"""

from __future__ import annotations

import numpy as np
import pytest

from .api.test_chunker import check_every_chunk_size
from .conftest import CORPORA, GIVEN_CORPUS, PACKED, encoding_of
from .patterns.test_pattern import check_split
from .training.test_merging import check_against_both


def given(name: str) -> bytes:
    return (GIVEN_CORPUS / f"{name}.txt").read_bytes()


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("text", CORPORA)
def test_streams(name: str, text: str) -> None:
    check_every_chunk_size(name, given(text))


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("text", CORPORA)
def test_whole_texts(name: str, text: str) -> None:
    data = given(text)
    enc = encoding_of(name)
    ids = enc.encode(data.decode(), disallowed_special=())
    assert enc.decode(ids) == enc.decode(iter(ids)) == data.decode()
    assert enc.decode_bytes(ids) == enc.decode_bytes(np.array(ids)) == data


@pytest.mark.parametrize("name", ["r50k", "cl100k", "o200k"])
@pytest.mark.parametrize("text", CORPORA)
def test_split(name: str, text: str) -> None:
    check_split(name, given(text))


def test_merges() -> None:
    check_against_both([given(name).decode() for name in CORPORA])
