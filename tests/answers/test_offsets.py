"""Where tokens come from: exact for whole texts, the same in streams, for any cut and encoding."""

from __future__ import annotations

import pickle
import random
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import streamtok
from streamtok import StateError
from streamtok._core.encode import spans_in
from streamtok.engines.rules import NO_RULES
from streamtok.engines.source_units import UNITS

from ..encodings import SINGLES, make_encoding
from ..oracles import cut
from .slowly import any_encoding, any_settings, any_text, as_given

GPT2 = streamtok.get_encoding("gpt2")
seeds = st.integers(0, 2**32)


def characters(text: str | bytes, errors: str) -> list[tuple[int, int, int, bool]]:
    """Of each character as encoded: its bytes there, bytes and characters of the text, whether it
    was repaired.
    """
    found: list[tuple[int, int, int, bool]] = []
    if isinstance(text, bytes) and errors == "replace":
        while text:
            good, bad, end = text, 0, len(text)
            try:
                text.decode()
            except UnicodeDecodeError as error:  # Python says how much of it is one error
                good, bad, end = text[: error.start], error.end - error.start, error.end
            sizes = [len(one.encode()) for one in good.decode()]
            found += [(size, size, 1, False) for size in sizes]
            if bad:
                found.append((3, bad, 1, True))
            text = text[end:]
        return found
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors)
    for one in re.findall("[\ud800-\udbff][\udc00-\udfff]|[\\s\\S]", text):
        size = 4 if len(one) == 2 else len(one.encode("utf-8", "surrogatepass"))
        if errors == "surrogateescape" and "\udc80" <= one <= "\udcff":
            size = 1
        found.append((size, size, len(one), False))
    return found


def slowly(
    encoding: streamtok.Encoding, text: str | bytes, unit: str, errors: str, ids: list[int]
) -> list[list[int]]:
    """The law, for an encoding that does not change text and leaves nothing out."""
    places = []  # of each byte as encoded: the place where it begins and ends
    at = 0
    for size, n_bytes, n_characters, is_repaired in characters(text, errors):
        if unit == "byte" and not is_repaired:
            places += [(at + i, at + i + 1) for i in range(size)]
            at += size
            continue
        width = {"byte": n_bytes, "character": n_characters, "utf16": 2 if size == 4 else 1}[unit]
        places += [(at, at + width)] * size
        at += width
    spans = []
    byte = 0
    for id in ids:
        size = len(encoding.decode_single_token_bytes(id))
        spans.append([places[byte][0], places[byte + size - 1][1]])
        byte += size
    assert byte == len(places)
    return spans


def in_stream(
    rng: random.Random, encoding: streamtok.Encoding, text: Any, unit: str, options: dict[str, Any]
) -> tuple[list[int], list[list[int]]]:
    """What a stream says, in chunks, through copies."""
    stream = encoding.stream_encoder(**options)
    ids, spans = [], []
    for chunk in [*cut(rng, text, rng.choice([1, 3, 20])), None]:
        given: Any = text[:0] if chunk is None else chunk
        found = stream.encode_with_offsets(given, chunk is None, unit=unit)
        ids += found[0].tolist()
        spans += found[1].tolist()
        if rng.random() < 0.4:
            stream = stream.copy()
    return ids, spans


def seen(stream: streamtok.StreamEncoder) -> Any:
    """All that a stream is."""
    return stream._reserve(), repr(stream._trace), stream.bytes_in, stream.tokens_out


def is_plain(encoding: streamtok.Encoding) -> bool:
    pattern = encoding.pattern
    has_merges = (
        encoding.definition.vocabulary.model is None
    )  # or else there may be unknown characters
    return (
        encoding.definition.rules == NO_RULES
        and has_merges
        and pattern is not None
        and pattern.is_total
    )


@settings(max_examples=120, deadline=None)
@given(seeds, st.sampled_from(UNITS))
def test_streams_and_whole_texts_agree(seed: int, unit: str) -> None:
    rng = random.Random(seed)
    encoding, letters = any_encoding(rng)
    options = any_settings(rng, encoding)
    text = as_given(rng, any_text(rng, letters))
    ids, spans = encoding.encode_with_offsets(text, unit, **options)
    wanted = encoding.encode(text, **options)
    assert ids.tolist() == wanted
    assert spans.shape == (len(ids), 2)
    assert spans.dtype == np.int64
    assert (spans[:, 0] <= spans[:, 1]).all()
    if is_plain(encoding):
        before, after = map(
            len, encoding.definition.template if "add_special_tokens" in options else ((), ())
        )
        inner = wanted[before : len(wanted) - after]
        slow = slowly(encoding, text, unit, options["errors"], inner)
        end = slow[-1][1] if slow else 0
        assert spans.tolist() == [[0, 0]] * before + slow + [[end, end]] * after
    if encoding.pattern is not None and encoding.pattern.is_total:
        found = in_stream(rng, encoding, text, unit, options)
        assert found == (wanted, spans.tolist())


@given(st.text("ab1, é", max_size=600), st.lists(st.integers(0, 1500), max_size=4))
@example("ab" + 300 * ", " + "ab" * 200 + "é1", [1, 2, 3, 700])
def test_text_that_is_left_out_is_in_no_span_of_a_stream(text: str, cuts: list[int]) -> None:
    encoding = make_encoding(r"[a-z]+|\d", bytes_and(b"ab", b"abab"), {})
    data, wanted = text.encode(), []
    for found in re.finditer(rb"[a-z]+|\d", data):
        at = found.start()
        for token in encoding.decode_tokens_bytes(encoding.encode(found[0])):
            wanted.append([at, at + len(token)])
            at += len(token)
    assert encoding.encode_with_offsets(text, "byte")[1].tolist() == wanted
    stream, spans = encoding.stream_encoder(), []
    for start, stop in pairwise([0, *sorted(min(at, len(data)) for at in cuts), len(data)]):
        spans += stream.encode_with_offsets(data[start:stop], unit="byte")[1].tolist()
    spans += stream.encode_with_offsets(b"", final=True, unit="byte")[1].tolist()
    assert spans == wanted


def bytes_and(*tokens: bytes) -> dict[bytes, int]:
    singles = dict(SINGLES)
    return singles | {token: 256 + i for i, token in enumerate(tokens)}


@pytest.mark.parametrize("special", [{"<s>": 256}, {"<one>": 257, "<other>": 257, "<s>": 257}])
def test_an_id_may_stand_for_texts_of_different_sizes(special: dict[str, int]) -> None:
    encoding = make_encoding(r"[\s\S]+", bytes_and(b"ab"), special)
    assert encoding.encode_with_offsets("ba")[1].tolist() == [[0, 1], [1, 2]]
    text = "ab<s>é" + "".join(special)
    ids, spans = encoding.encode_with_offsets(text, allowed_special="all")
    assert ids.tolist() == encoding.encode(text, allowed_special="all")
    assert spans[:2].tolist() == [[0, 2], [2, 5]]
    found = [text[start:stop] for start, stop in spans[-len(special) :]]
    assert found == list(special)


def test_batches() -> None:
    texts = ["one", "naïve 👍", b"\xff", ""]
    found = GPT2.encode_batch_with_offsets(texts, "utf16", errors="replace")
    for text, (ids, spans) in zip(texts, found, strict=True):
        wanted = GPT2.encode_with_offsets(text, "utf16", errors="replace")
        assert (ids.tolist(), spans.tolist()) == (wanted[0].tolist(), wanted[1].tolist())


def test_wrong_calls_say_so() -> None:
    text: Any = "héllo 👍 ok, " * 30
    ids = np.append(GPT2.encode_to_numpy(text), [60000]).astype(np.uint32)
    with pytest.raises(ValueError, match="id 60000 has no size"):
        GPT2.definition.token_sizes.spans(ids, np.empty((0, 3), np.int64), 0)
    for span in ((0, 5), (-1, 1), (3, 2)):
        with pytest.raises(ValueError, match="a span is not in the text"):
            spans_in(False, np.array([span]), b"text")
    stream = GPT2.stream_encoder()
    stream.encode("some text ")
    with pytest.raises(ValueError, match="from the first chunk on"):
        stream.encode_with_offsets("more")
    assert stream.flush() == GPT2.encode("some text ")[-1:]


def test_a_call_that_raises_changes_nothing() -> None:
    stream = GPT2.stream_encoder(max_pending=8)
    with pytest.raises(ValueError, match="disallowed special token"):
        stream.encode_with_offsets("a<|endoftext|>")
    stream.encode_with_offsets("né ".encode()[:2])
    before = seen(stream)
    for chunk, error in [(b"\xff", UnicodeDecodeError), ("a", UnicodeDecodeError), (3, TypeError)]:
        with pytest.raises(error):
            stream.encode_with_offsets(chunk)  # type: ignore[arg-type]
        assert seen(stream) == before
    with pytest.raises(ValueError, match="out has room for 0 ids"):
        stream.encode_into(b"\xa9 hello world", np.empty(0, np.uint32))
    assert seen(stream) == before
    ids, spans = stream.encode_with_offsets(b"\xa9 x", final=True)
    assert spans.tolist() == [[0, 1], [1, 2], [2, 4]][: len(ids)]


def test_other_calls_may_be_mixed_with_it() -> None:
    text = "naïve text, ☕ and 👍"
    ids, spans = GPT2.encode_with_offsets(text)
    stream = GPT2.stream_encoder()
    known = stream.encode_with_offsets(text[:3])[0].tolist()
    known += stream.encode(text[3:6])
    out = np.empty(20, np.uint16)
    known += out[: stream.encode_into(text[6:9], out)].tolist()
    more, last = stream.encode_with_offsets(text[9:], final=True)
    assert known + more.tolist() == ids.tolist()
    assert last.tolist() == spans[len(known) :].tolist()
    assert stream.encode_with_offsets("a b", final=True)[1].tolist() == [[0, 1], [1, 3]]


def test_a_stream_that_gives_offsets_is_not_saved() -> None:
    plain = GPT2.stream_encoder()
    ids = plain.encode("hello wor")
    followed = GPT2.stream_encoder()
    assert followed.encode_with_offsets("naïve te")[0].tolist() == GPT2.encode("naïve")
    for save in (followed.getstate, lambda: pickle.dumps(followed)):
        with pytest.raises(StateError, match="tracks offsets cannot be saved"):
            save()
    assert followed.copy().encode_with_offsets("xt", final=True)[1].tolist() == [[5, 10]]
    followed.setstate(plain.getstate())
    assert ids + followed.encode("ld", final=True) == GPT2.encode("hello world")
    assert followed.getstate()


def test_a_stream_keeps_only_what_waits() -> None:
    stream = GPT2.stream_encoder()
    for _ in range(200):
        stream.encode_with_offsets("naïve text, ☕ and 👍 \n" * 50)
    assert len(repr(seen(stream))) < 1000
