"""Templates: ids around a text, in whole texts, batches and streams, where they are asked for."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamtok
from streamtok.engines.template import NO_TEMPLATE, Template
from streamtok.errors import PendingLimitExceeded, StateError
from tests.conftest import stream_ids
from tests.doors import COUNTS, IDS
from tests.encodings import like, space_rules
from tests.saved_streams import MARK, changed

BASE = streamtok.get_encoding("r50k_base")
SPECIALS = {"<s>": 60000, "</s>": 60001, "<x>": 70001}
TEMPLATES = [
    ((60000,), ()),
    ((), (60001,)),
    ((60000,), (60001,)),
    ((60000, 5), (60001, 70001, 60001)),
]
TEXTS = ["", "a", "hello world", " 中文字符 hello 😀 world", "a<s>b", "x" * 300]


def made(before: tuple[int, ...], after: tuple[int, ...], **more: Any) -> Any:
    return like("r50k_base", special=SPECIALS, template=Template(before, after), **more)


ENCODINGS = [made(*template) for template in TEMPLATES]
SPACES = made((60000,), (60001,), rules=space_rules())


@pytest.fixture(params=[*ENCODINGS, SPACES], ids=[*(str(t) for t in TEMPLATES), "spaces"])
def enc(request: pytest.FixtureRequest) -> Any:
    return request.param


def around(enc: Any, ids: list[int]) -> list[int]:
    return [*enc.definition.template.before, *ids, *enc.definition.template.after]


# Whole texts

# The pipeline frames documents by ids of its own, and the others take no such setting.
WITHOUT_TEMPLATES = ("encode_ordinary", "ordinary_batch", "JSON lines", "pipeline")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("is_asked", [True, False])
def test_every_door(enc: Any, text: str, is_asked: bool) -> None:
    """What budgets, chunks and spans make of a template is among the laws of `tests/answers`."""
    expected = enc.encode(text, allowed_special="all")
    if is_asked:
        expected = around(enc, expected)
    asked: dict[str, Any] = {"allowed_special": "all", "add_special_tokens": is_asked}
    for name, door in IDS.items():
        if name not in WITHOUT_TEMPLATES:
            assert door(enc, text, asked) == expected, name
    for name, count in COUNTS.items():
        if text or name != "split":
            assert count(enc, text, asked) == len(expected), name
    assert enc.fits(text, len(expected), **asked)
    assert not (expected and enc.fits(text, len(expected) - 1, **asked))
    assert enc.encode_batch([text, ""], **asked) == [expected, around(enc, []) * is_asked]


def test_large_texts_on_threads() -> None:
    enc = made((60000,), (60001,))
    text = "The quick brown fox. " * 100_000
    expected = around(enc, BASE.encode(text))
    assert enc.encode_to_numpy(text, add_special_tokens=True, num_threads=2).tolist() == expected
    assert enc.count(text, add_special_tokens=True, num_threads=2) == len(expected)
    assert enc.encode_batch([text, "a"], add_special_tokens=True) == [expected, [60000, 64, 60001]]


def test_what_has_no_template_adds_nothing() -> None:
    assert BASE.definition.template == NO_TEMPLATE
    assert BASE.encode("hello world", add_special_tokens=True) == [31373, 995]
    stream = BASE.stream_encoder(add_special_tokens=True)
    assert stream.getstate() == BASE.stream_encoder().getstate()
    assert stream_ids(stream, ["hello ", "world"]) == [31373, 995]


def test_digests_and_pickles() -> None:
    plain = made((), ())
    enc = made((60000,), (60001,))
    assert enc.digest == plain.digest
    again = pickle.loads(pickle.dumps(enc))
    assert again.definition.template == enc.definition.template
    assert again.encode("a", add_special_tokens=True) == [60000, 64, 60001]
    assert enc.stream_encoder().getstate() == plain.stream_encoder().getstate()


# Streams


def test_the_beginning_comes_with_the_first_call(enc: Any) -> None:
    stream = enc.stream_encoder(add_special_tokens=True)
    before, after = map(list, enc.definition.template)
    assert (stream.tokens_out, stream.bytes_in, stream.pending) == (0, 0, 0)
    assert stream.encode(b"") == before
    assert stream.tokens_out == len(before)
    assert stream.encode("h") == []
    assert (stream.tokens_out, stream.bytes_in) == (len(before), 1)
    assert stream.encode("i there") == enc.encode("hi")
    assert stream.tokens_out == len(before) + 1
    assert stream.flush() == [*enc.encode("x there")[1:], *after]
    assert (stream.tokens_out, stream.bytes_in, stream.pending) == (0, 0, 0)
    assert stream.flush() == before + after == enc.encode("", add_special_tokens=True)
    stream.encode("x")
    stream.reset()
    assert stream_ids(stream, []) == before + after


@given(
    data=st.text("ab é😀<s>\n", max_size=12).map(str.encode),
    cuts=st.sets(st.integers(0, 40), max_size=5),
    which=st.integers(0, len(ENCODINGS)),
    doors=st.randoms(use_true_random=False),
)
def test_states_and_doors(data: bytes, cuts: set[int], which: int, doors: Any) -> None:
    enc = [*ENCODINGS, SPACES][which]
    settings: dict[str, Any] = {"disallowed_special": (), "add_special_tokens": True}
    stream = enc.stream_encoder(**settings)
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    ids: list[int] = []
    for begin, end in itertools.pairwise(bounds):
        ids += _through(doors.randrange(3), stream, data[begin:end], False)
        assert stream.tokens_out == len(ids)
        assert stream.bytes_in == end
        how = doors.randrange(4)
        if how == 0:
            state = stream.getstate()
            stream = enc.stream_encoder(**settings)
            stream.setstate(state)
        elif how == 1:
            stream = pickle.loads(pickle.dumps(stream))
        elif how == 2:
            other, stream = stream, copy.copy(stream)
            other.reset()
            other.encode("other text")
    ids += _through(doors.randrange(3), stream, b"", True)
    assert ids == around(enc, enc.encode(data, disallowed_special=()))


def _through(door: int, stream: Any, chunk: bytes, final: bool) -> list[int]:
    if door == 0:
        return stream.encode(chunk, final)
    if door == 1:
        return stream.encode_to_numpy(chunk, final).tolist()
    out = np.zeros(100, np.uint32)
    return out[: stream.encode_into(chunk, out, final)].tolist()


# Failures change nothing


def test_buffers(enc: Any) -> None:
    expected = around(enc, enc.encode("hello world"))
    for size in range(len(expected)):
        stream = enc.stream_encoder(add_special_tokens=True)
        state = stream.getstate()
        out = np.full(size, 7, np.uint32)
        message = f"out has room for {size} ids, {len(expected)} are ready"
        with pytest.raises(ValueError, match=message):
            stream.encode_into("hello world", out, True)
        assert out.tolist() == [7] * size
        assert (stream.getstate(), stream.tokens_out) == (state, 0)
        assert stream.encode("hello world", True) == expected
    out = np.full(len(expected) + 2, 7, np.uint32)
    assert stream.encode_into(b"hello world", out, True) == len(expected)
    assert out.tolist() == [*expected, 7, 7]


@pytest.mark.parametrize("final", [False, True])
def test_refused_text(enc: Any, final: bool) -> None:
    for begun in ("", "be"):
        stream = enc.stream_encoder(add_special_tokens=True, max_pending=20)
        if begun:
            stream.encode(begun)
        state = stream.getstate()
        with pytest.raises(ValueError, match="<s>"):
            stream.encode("a<s> b", final)
        with pytest.raises(UnicodeDecodeError):
            stream.encode(b"\xff", final)
        if not final:
            stream.max_pending = 0
            with pytest.raises(PendingLimitExceeded):
                stream.encode("hell")
            stream.max_pending = 20
        assert stream.getstate() == state
        whole = enc.encode(begun + "a", add_special_tokens=True)
        assert (
            stream.encode("a", True) == whole[len(enc.definition.template.before) if begun else 0 :]
        )


def test_forged_states() -> None:
    enc = made((60000,), (60001,))
    stream = enc.stream_encoder(add_special_tokens=True)
    other = made((60000,), (60000,)).stream_encoder(add_special_tokens=True)
    for state in (other.getstate(), enc.stream_encoder().getstate()):
        with pytest.raises(StateError, match="of another encoding"):
            stream.setstate(state)
    stream.encode("hello wor")
    state = stream.getstate()
    plain = enc.stream_encoder()
    plain.encode("hello wor")
    body = plain._tail.getstate()  # " wor" waits, and "hello" is out
    for forged in (b"", body[: MARK.itemsize - 1], changed(body, {"tokens_out": 0})):
        with pytest.raises(StateError):
            stream._tail.setstate(forged)
        assert stream.getstate() == state
