"""Merges step by step: the engine's ids, and heaps and lists that fit together."""

from __future__ import annotations

import json

import numpy as np
import pytest

import streamtok
from streamtok.answers.views import merges
from streamtok.answers.views.merges import MergeTrace, trace_merges
from streamtok.vocabulary.table import Vocabulary

from ...encodings import make_encoding
from ...reference.test_reference import PATTERN


def check(trace: MergeTrace) -> None:
    """A trace by itself: each step follows from the one before it."""
    parts = [part.bytes for part in trace.start]
    assert b"".join(parts) == trace.pretoken
    versions = dict.fromkeys(range(len(parts)), 0)
    waiting = []
    for step in trace.steps:
        one = step.candidate
        key = (one.rank, one.left, one.right, one.left_version, one.right_version)
        if step.kind == "pushed":
            waiting.append(key)
            assert not one.is_stale
        else:
            assert key == min(waiting)  # the best rank, then the leftmost
            waiting.remove(key)
            is_stale = key[3:] != (versions[one.left], versions[one.right])
            assert is_stale == one.is_stale == (step.kind == "stale")
        if step.kind == "merged":
            versions[one.left] += 1
            versions[one.right] += 1
        heap = [(e.rank, e.left, e.right, e.left_version, e.right_version) for e in step.heap]
        assert sorted(heap) == sorted(waiting)
        assert {part.at: part.version for part in step.parts}.items() <= versions.items()
        assert b"".join(part.bytes for part in step.parts) == trace.pretoken
    assert not waiting
    assert trace.merges == len(trace.start) - len(trace.steps[-1].parts if trace.steps else parts)
    assert json.loads(json.dumps(trace.as_json())) == trace.as_json()


@pytest.mark.parametrize(
    "text", [" tokenization", "aaaaaaaa", " 東京", "\n\n\n", "x", "banana" * 9]
)
def test_the_ids_are_those_of_the_engine(enc, text):
    trace = trace_merges(enc, text)
    check(trace)
    assert trace.ids == enc.definition.encoder.encode_pretoken(text.encode())
    if trace.steps and not trace.is_whole_token:
        assert [part.id for part in trace.steps[-1].parts] == trace.ids


def test_tied_tokens_merge_from_left_to_right():
    tokens = [*(bytes([byte]) for byte in range(256)), b"bc", b"ab"]
    numbers = np.arange(258, dtype=np.uint32)
    sizes = [len(token) for token in tokens]
    vocabulary = Vocabulary(
        b"".join(tokens),
        np.cumsum([0, *sizes]).astype(np.uint32),
        numbers,
        lefts=np.array([size - 1 for size in sizes], np.uint32),
        ties=np.minimum(numbers, 256),
    )
    enc = make_encoding(PATTERN, vocabulary)
    trace = trace_merges(enc, b"abcx")
    check(trace)
    assert trace.ids == [257, ord("c"), ord("x")]  # by number, bc would be first
    assert {step.candidate.rank for step in trace.steps} == {256}


def test_empty_and_too_long(monkeypatch):
    monkeypatch.setattr(merges, "LONGEST", 20)
    enc = streamtok.get_encoding("gpt2")
    trace = trace_merges(enc, b"")
    assert (trace.steps, trace.ids) == ([], [])
    trace_merges(enc, b"a" * 20)
    with pytest.raises(ValueError, match="at most 20"):
        trace_merges(enc, b"a" * 21)
