"""The law of streams: however the input is cut, the ids are those of the whole."""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamtok.reference import bpe as reference

from ..conftest import CORPORA, PACKED, chunked, corpus, encoding_of, stream_ids, twin_of
from ..nasty import CASCADES, TEXTS
from ..saved_streams import changed

POLICIES = ["strict", "replace", "surrogateescape"]


def outcome(function, *args, **settings):
    """What a call gives, or the kind of error that it raises."""
    try:
        return function(*args, **settings)
    except UnicodeDecodeError as error:
        return "UnicodeDecodeError", error.start, error.end, error.reason
    except ValueError as error:
        return "ValueError", str(error)


def streamed(enc, chunks, **settings):
    return outcome(stream_ids, enc.stream_encoder(**settings), chunks)


@pytest.mark.parametrize("errors", POLICIES)
@pytest.mark.parametrize("allowed", ["all", frozenset()])
def test_every_split_and_pair_of_splits(enc, errors, allowed):
    settings = {"allowed_special": allowed, "disallowed_special": (), "errors": errors}
    for data in TEXTS:
        whole = outcome(enc.encode, data, **settings)
        positions = range(len(data) + 1)
        for i in positions:
            assert streamed(enc, [data[:i], data[i:]], **settings) == whole, (data, i)
            for j in range(i, len(data) + 1):
                chunks = [data[:i], data[i:j], data[j:]]
                assert streamed(enc, chunks, **settings) == whole, (data, i, j)


@pytest.mark.parametrize("errors", POLICIES)
def test_nasty_texts_equal_the_reference(enc, errors):
    for data in TEXTS:
        expected = outcome(
            reference.encode,
            enc._mergeable_ranks,
            enc._pat_str,
            data,
            special_tokens=enc._special_tokens,
            allowed_special=enc.special_tokens_set,
            errors=errors,
        )
        actual = outcome(enc.encode, data, allowed_special="all", errors=errors)
        if expected and expected[0] == "UnicodeDecodeError":
            assert actual[0] == "UnicodeDecodeError", data
        else:
            assert actual == expected, data


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("kind", CORPORA)
def test_corpus_equals_tiktoken_at_every_chunk_size(name, kind):
    enc, data = encoding_of(name), corpus(kind)
    whole = twin_of(name).encode_to_numpy(data.decode(), disallowed_special=())
    for given in (data, data.decode()):
        np.testing.assert_array_equal(enc.encode_to_numpy(given, disallowed_special=()), whole)
        assert enc.encode(given, disallowed_special=()) == whole.tolist()
        assert enc.count(given, disallowed_special=()) == len(whole)
    rng = random.Random(f"{name} {len(data)}")
    part = data[: 1 << 14]
    cut = len(part.decode("utf-8", "ignore").encode())
    part = part[:cut]
    expected = enc.encode(part, disallowed_special=())
    for size in [1, 2, 3, 7, 64]:
        stream = enc.stream_encoder(disallowed_special=())
        assert stream_ids(stream, chunked(part, size)) == expected
    stream = enc.stream_encoder(disallowed_special=())
    parts = [stream.encode_to_numpy(chunk) for chunk in chunked(data, 4096)]
    parts.append(stream.encode_to_numpy(b"", final=True))
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    parts, position = [], 0
    while position < len(data):
        size = rng.choice([1, 3, 20, 300, 5000, 70_000, 300_000])
        parts.append(stream.encode_to_numpy(data[position : position + size]))
        position += size
    parts.append(stream.encode_to_numpy(b"", final=True))
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize(("name", "text"), CASCADES)
def test_cascades_stream_exactly(name, text):
    for shorter in (text, text[:-1], text[:-5]):
        enc, data, ids = encoding_of(name), shorter.encode(), twin_of(name).encode(shorter)
        assert enc.encode(data) == ids
        for size in range(1, len(data) + 1):
            assert stream_ids(enc.stream_encoder(), chunked(data, size)) == ids


def endless(kind: str, size: int) -> bytes:
    rng = random.Random(kind)
    if kind == "letters":
        return bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=size))
    if kind == "base64":
        return bytes(rng.choices(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", k=size))
    if kind == "cjk":
        return "".join(chr(rng.randrange(0x4E00, 0x9000)) for _ in range(size // 3)).encode()
    return kind.encode() * (size // len(kind.encode()))


KINDS = ["letters", "base64", "cjk", "a", "=", "-", "ab", " ", "\n", "é", "\t", "lorem"]


@pytest.mark.parametrize("kind", KINDS)
def test_one_endless_pretoken(enc, twin, kind):
    data = endless(kind, 60_000)
    whole = twin.encode_ordinary(data.decode())
    assert enc.encode_ordinary(data) == whole
    for size in [999, 4096, 60_000]:
        stream = enc.stream_encoder()
        ids, held = [], 0
        for chunk in chunked(data, size):
            ids += stream.encode(chunk)
            held = max(held, stream.pending)
        assert ids + stream.flush() == whole
        assert held <= 3 * 4096 + size


@pytest.mark.parametrize("head", ["\n", "x\n\n", "a\r\n", " \n ", "!!\n", "\n\t"])
@pytest.mark.parametrize("blank", [" ", "\t", " \t", "\xa0", "\u3000 "])
def test_endless_blanks_after_a_newline(enc, twin, head, blank):
    """Two hypotheses: the piece may still go on to another newline."""
    name = next(iter(enc._special_tokens))
    tails = ["", "x", "\n", "\n  x", "\n\n", "\r", "é", "1", name, f"\n{name}"]
    for tail in random.sample(tails, 5):
        text = head + blank * (13_000 // len(blank)) + tail
        whole = twin.encode(text, allowed_special="all")
        assert enc.encode(text, allowed_special="all") == whole
        data = text.encode()
        size = random.choice([1000, 4096, 9001])
        stream = enc.stream_encoder(allowed_special="all")
        assert stream_ids(stream, chunked(data, size)) == whole, size
    stream = enc.stream_encoder()
    stream.encode(head)
    held = 0
    for _ in range(60):
        stream.encode(blank * 4000)
        held = max(held, stream.pending)
    if blank in " \t":
        assert held <= 8 * 4096
    state = stream.getstate()
    twin_stream = enc.stream_encoder()
    twin_stream.setstate(state)
    assert twin_stream.encode("\nx", final=True) == stream.encode("\nx", final=True)


def test_encode_into_from_an_item_on(enc):
    """The machine of streams fills buffers of all kinds."""
    stream, out = enc.stream_encoder(), np.zeros(40, np.uint32)
    at = stream.encode_into("hello world,", out, start=5)
    at += stream.encode_into(" hello again", out, final=True, start=5 + at)
    assert out.tolist() == [0] * 5 + enc.encode("hello world, hello again") + [0] * (35 - at)
    stream.encode("hello")
    before = stream.getstate()
    for start, room in ((39, 1), (40, 0), (41, 0), (1 << 62, 0)):
        with pytest.raises(ValueError, match=f"out has room for {room} ids"):
            stream.encode_into(" world again", out, final=True, start=start)
    with pytest.raises(ValueError, match="must not be negative"):
        stream.encode_into("a", out, start=-1)
    with pytest.raises(TypeError):
        stream.encode_into("a", out, True, 3)
    assert stream.getstate() == before


def test_offsets_beyond_4_gib(enc):
    """A stream whose counters start there, as if that much had gone by."""
    from streamtok.chunker import seal, unseal

    far = (1 << 32) - 50
    stream = enc.stream_encoder()
    body = unseal(stream.getstate())
    counters = {"offset": far, "bytes_in": far, "tokens_out": far // 4}
    stream.setstate(seal(body[:32] + changed(body[32:], counters)))
    assert (stream.bytes_in, stream.tokens_out) == (far, far // 4)
    text = "some words, 日本語 and = " * 2000
    ids = []
    for chunk in chunked(text.encode(), 997):
        ids += stream.encode(chunk)
    with pytest.raises(UnicodeDecodeError) as caught:
        stream.encode(b"x\xff")
    assert caught.value.start == far + len(text.encode()) + 1
    assert stream.bytes_in == far + len(text.encode())
    assert stream.tokens_out == far // 4 + len(ids)
    assert ids + stream.flush() == enc.encode(text)
