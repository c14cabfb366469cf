"""Chunks: the laws of `split`, over encodings, boundaries and ways to give the source."""

from __future__ import annotations

import io
import itertools
import random
import re
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok.answers.prefixes import Prefixes
from streamtok.patterns.automaton import Automaton

from ..oracles import cut
from .slowly import (
    any_encoding,
    any_settings,
    any_text,
    as_given,
    places_of,
)

CL100K = streamtok.get_encoding("cl100k_base")
GPT2 = streamtok.get_encoding("gpt2")
SENTENCE = r"(?<=[.!?])\s+|\n"
TEXT = (
    "It began. Nobody knew why! Or did they?\nA second line, naïve and 日本語.\n\n"
    "A new paragraph\nof two lines.\n \n\nThe last one: no end"
)


@settings(max_examples=120)
@given(seed=st.integers(0, 1 << 40), overlaps=st.booleans())
def test_the_laws(seed: int, overlaps: bool) -> None:
    rng = random.Random(seed)
    encoding, letters = any_encoding(rng)
    how = any_settings(rng, encoding)
    text = as_given(rng, any_text(rng, letters))
    template = len(encoding.encode("", **how))
    budget = rng.randint(12, 40) + template  # more than any character has
    overlap = rng.randint(0, budget - template - 1) if overlaps else 0
    boundary = any_boundary(rng, text)
    chunks = list(encoding.split(text, budget, overlap, boundary, **how))
    places = set(places_of(text))
    done = 0
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.stop]
        assert chunk.n_tokens == len(encoding.encode(chunk.text, **how)) <= budget
        assert {chunk.start, chunk.stop} <= places
        assert chunk.start <= done < chunk.stop
        repeated = text[chunk.start : done]
        assert len(encoding.encode(repeated, **how)) - template <= overlap
        done = chunk.stop
    assert done == len(text)
    if text:
        given_in_parts = cut(rng, text, rng.choice([3, 50])) or [text]
        assert list(encoding.split(given_in_parts, budget, overlap, boundary, **how)) == chunks


def any_boundary(rng: random.Random, text: Any) -> Any:
    if rng.random() < 0.2:
        module = rng.choice([re, regex])
        return module.compile(SENTENCE if isinstance(text, str) else SENTENCE.encode())
    return rng.choice(["character", "pretoken", "line", "paragraph"])


@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 40))
def test_a_chunk_is_the_longest_that_fits(seed: int) -> None:
    rng = random.Random(seed)
    encoding, letters = any_encoding(rng)
    if encoding.definition.specials.added:  # which are not cut, though a longer chunk might fit
        return
    text = any_text(rng, letters, 4).decode("utf-8", "replace")
    budget = rng.randint(12, 20)
    at = 0
    for chunk in encoding.split(text, budget):
        ends = range(at + 1, len(text) + 1)
        fitting = [p for p in ends if encoding.count(text[at:p], disallowed_special=()) <= budget]
        assert (chunk.start, chunk.stop) == (at, fitting[-1])
        at = chunk.stop


def ends(boundary: Any, text: str) -> set[int]:
    if boundary == "pretoken":
        assert CL100K.pattern is not None
        return {0, *itertools.accumulate(map(len, CL100K.pattern.findall(text)))}
    expression = {"line": r"\n", "paragraph": r"\n(?:[ \t\r]*\n)+"}.get(boundary, SENTENCE)
    return {0, len(text), *(match.end() for match in re.finditer(expression, text))}


@pytest.mark.parametrize("boundary", ["pretoken", "line", "paragraph", re.compile(SENTENCE)])
def test_chunks_end_at_boundaries(boundary: Any) -> None:
    """And each is the longest that does, for as long as there is one."""
    text = TEXT * 20
    for budget in (30, 50, 200):
        found = ends(boundary, text)
        for chunk in CL100K.split(text, budget, 0, boundary):
            assert {chunk.start, chunk.stop} <= found
            later = [p for p in sorted(found) if p > chunk.stop][:3]
            assert all(CL100K.count(text[chunk.start : p]) > budget for p in later)


def test_where_a_boundary_is_too_far_a_finer_one_counts() -> None:
    text = "one two three four five six\nseven\n\n" + "x" * 50 + "\n\neight"
    chunks = [chunk.text for chunk in CL100K.split(text, 4, 0, "paragraph")]
    assert chunks[:3] == ["one two three four", " five six\n", "seven\n\n"]
    assert "".join(chunks) == text


def test_overlap() -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 10
    chunks = list(CL100K.split(text, 16, 4))
    for one, two in itertools.pairwise(chunks):
        repeated = text[two.start : one.stop]
        assert CL100K.encode(repeated) == CL100K.encode(one.text)[-4:]
    lines = list(CL100K.split("a b\nc d\ne f\ng h\n", 6, 3, "line"))
    assert [chunk.text for chunk in lines] == ["a b\nc d\n", "c d\ne f\n", "e f\ng h\n"]


def test_special_tokens_are_not_cut() -> None:
    text = "ab<|endoftext|>" * 9
    for chunk in CL100K.split(text, 3, allowed_special="all"):
        assert chunk.text in ("ab<|endoftext|>ab", "<|endoftext|>ab<|endoftext|>")


def test_sources() -> None:
    text = TEXT * 5
    expected = list(CL100K.split(text, 20))
    for source in (io.StringIO(text), list(text), iter([text[:7], "", text[7:]])):
        assert list(CL100K.split(source, 20)) == expected
    data = text.encode()
    expected = list(CL100K.split(data, 20))
    for source in (io.BytesIO(data), bytearray(data), memoryview(data), [data[:100], data[100:]]):
        assert list(CL100K.split(source, 20)) == expected
    assert [chunk.text for chunk in expected] == [c.text.encode() for c in CL100K.split(text, 20)]
    assert list(CL100K.split("", 5)) == list(CL100K.split([], 5)) == []


def test_memory_is_that_of_a_chunk() -> None:
    """Also without any boundary, and a source without an end is read as chunks are taken."""

    def endless(unit: str) -> Iterator[str]:
        while True:
            yield unit * (2000 // len(unit))

    CL100K.encode(TEXT * 1000)  # from now on, ids are ints that are there already
    for unit, boundary in [("word ", "character"), ("x", "line"), ("日本語", "paragraph")]:
        chunks = CL100K.split(endless(unit), 100, 10, boundary)
        for _ in range(10):
            next(chunks)
        tracemalloc.start()
        for _ in range(8):
            next(chunks)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 400_000


def test_a_character_that_does_not_fit_is_named() -> None:
    text = "ab 🧬🧬 cd"
    assert CL100K.count("🧬") == 3
    with pytest.raises(ValueError, match=r"position 3, in '🧬.*more than 2 tokens"):
        list(CL100K.split(text, 2))
    chunks = CL100K.split(text.encode(), 2)
    with pytest.raises(ValueError, match="byte 3"):
        list(chunks)


def test_errors_have_the_offset_in_the_source() -> None:
    text = "naïve words " * 50
    with pytest.raises(UnicodeDecodeError) as caught:
        list(CL100K.split(text.encode() + b"\xff", 10))
    assert caught.value.start == len(text.encode())
    for source in (text + "<|endoftext|>", [text, "<|endof", "text|>"]):
        with pytest.raises(ValueError, match=f"at byte {len(text.encode())}"):
            list(CL100K.split(source, 10, disallowed_special="all"))


@pytest.mark.parametrize("encoding", [GPT2, CL100K], ids=["gpt2", "cl100k"])
@pytest.mark.parametrize("text", ["\u6f22", "ab", "!", "x\u00e9", "7"])
@pytest.mark.parametrize("kind", [str, str.encode])
def test_a_chunk_of_a_long_pretoken_costs_what_it_is_long(
    encoding: streamtok.Encoding, text: str, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few places are tried for it, and few characters are walked after it."""
    tried: list[int] = []
    steps: list[int] = []
    count, spans = Prefixes.count, Automaton.spans

    def counted(prefixes: Prefixes, stop: int) -> int:
        tried.append(stop)
        return count(prefixes, stop)

    def walked(pattern: Automaton, text: str, until: int | None = None) -> Iterator[Any]:
        watched = Watched(text)
        watched.steps = steps
        yield from spans(pattern, watched, until)

    monkeypatch.setattr(Prefixes, "count", counted)
    monkeypatch.setattr(Automaton, "spans", walked)
    source = kind(text * 3_000)
    chunks = list(encoding.split(source, 10, 0, "pretoken"))
    assert steps
    assert source[:0].join(chunk.text for chunk in chunks) == source
    assert len(tried) < 100 * len(chunks)
    assert len(steps) < 10 * len(source) + 100 * len(chunks)


class Watched(str):
    """Notes each character that is looked at."""

    steps: list[int]

    def __getitem__(self, at: Any) -> str:
        self.steps.append(at)
        return super().__getitem__(at)
