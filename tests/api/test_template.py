"""Templates: ids around a text, in whole texts, batches and streams, where they are asked for."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import streamtok
from streamtok.engines.template import NO_TEMPLATE, Template
from streamtok.errors import StateError
from tests.conftest import stream_ids
from tests.doors import COUNTS, IDS
from tests.encodings import like, space_rules

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


@pytest.mark.parametrize("more", [{}, {"rules": space_rules()}], ids=["plain", "spaces"])
def test_a_large_first_chunk(more: dict[str, Any]) -> None:
    """Memory for its ids is taken after those of the template are there."""
    text = "The quick brown fox. " * 10_000
    enc = made((60000, 5), (60001,), **more)
    ids = enc.stream_encoder(add_special_tokens=True).encode_to_numpy(text, final=True)
    assert ids.tolist() == enc.encode(text, add_special_tokens=True)


def test_states_of_another_template() -> None:
    """What else streams do, with templates too: `tests/long/states`."""
    enc = made((60000,), (60001,))
    stream = enc.stream_encoder(add_special_tokens=True)
    other = made((60000,), (60000,)).stream_encoder(add_special_tokens=True)
    for state in (other.getstate(), enc.stream_encoder().getstate()):
        with pytest.raises(StateError, match="of another encoding"):
            stream.setstate(state)
