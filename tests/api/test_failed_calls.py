"""What a failed call leaves, what a saved state holds: each of these once went wrong."""

from __future__ import annotations

import base64
import functools
import pickle

import numpy as np
import pytest

import streamtok
from streamtok import Encoding, StateError
from streamtok._core._testing import use_every_look

from ..conftest import encoding_of
from ..states.interrupts import in_the_core

BYTES = {bytes([i]): i for i in range(256)}


def look_ahead() -> Encoding:
    """A pattern that has to see the end of a run before it knows where the first pre-token ends."""
    return Encoding(
        "look_ahead",
        pat_str="xa*b|x|a+|[^xa]",
        mergeable_ranks={**BYTES, b"xa": 256},
        special_tokens={},
    )


@pytest.mark.parametrize("end", [b"", b"b", b"c"])
def test_a_refused_chunk_leaves_what_was_held(end):
    # The buffer shrank within the refused call, and what was saved of it went beyond its end.
    enc = look_ahead()
    held = b"x" + b"a" * 700_000
    stream = enc.stream_encoder()
    ids = stream.encode(held)
    state = stream.getstate()
    for bad in (b"c" + b"d" * 100_000 + b"\xff", b"b" + b"e" * 400_000 + b"\xc3("):
        with pytest.raises(UnicodeDecodeError) as error:
            stream.encode(bad)
        assert error.value.start == len(held) + bad.index(error.value.object)
        assert stream.getstate() == state
    assert ids + stream.encode(end, final=True) == enc.encode(held + end)


def test_a_refused_chunk_leaves_an_unfinished_character():
    stream = encoding_of("cl100k_base").stream_encoder(errors="replace")
    assert stream.encode(b"\xe4\xb8") == []
    with pytest.raises(ValueError, match="disallowed special token"):
        stream.encode(b"x<|endoftext|>")
    ids = stream.encode(b"\xad", final=True)
    assert stream.encoding.decode(ids) == "中"


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_repair_across_chunks_is_that_of_the_whole(size):
    enc = encoding_of("cl100k_base")
    data = b"\xff" * 40 + b"\xe4\xb8\xe4\xb8\xad\xf0\x9f\x98\xf0\x9f\x98\x80\xc3" * 5 + b"ab\xe4"
    stream = enc.stream_encoder(errors="replace")
    ids: list[int] = []
    for i in range(0, len(data), size):
        ids += stream.encode(data[i : i + size])
    assert ids + stream.flush() == enc.encode(data.decode("utf-8", "replace"))


STEPS = [
    "\n" + " " * 6000,
    "hello world foo",
    " " * 1500,
    "\n",
    "x" * 3000,
    " ",
    "\n" + " " * 3000 + "\n",
]


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "r50k_base", "llama3_style"])
def test_every_state_of_a_stream_can_be_loaded(name):
    # A hypothesis that was resolved was saved with positions of bytes that had been dropped.
    enc = encoding_of(name)
    stream = enc.stream_encoder()
    ids: list[int] = []
    for step in STEPS:
        ids += stream.encode(step)
        for loaded in (enc.stream_encoder(), pickle.loads(pickle.dumps(stream))):
            loaded.setstate(stream.getstate())
            assert loaded.getstate() == stream.getstate()
            assert loaded.copy().flush() == stream.copy().flush()
        stream.setstate(stream.getstate())
    assert ids + stream.flush() == enc.encode("".join(STEPS))


@pytest.mark.parametrize(
    "changes",
    [
        {0: 1 << 40},  # bytes held
        {0: 1},
        {1: 77},  # searched for special tokens
        {2: 0},  # when to look for stable tokens
        {7: 77},  # the scan: start, accept, position, state
        {8: 77},
        {9: 1 << 60},
        {10: 0},
        {10: 1 << 20},
        {12: 3, 17: 1},  # the other hypothesis
        {15: 1 << 20, 17: 1},
    ],
)
def test_a_state_with_wrong_positions_is_refused(changes):
    from streamtok._core.encode import STATE

    stream = encoding_of("cl100k_base").stream_encoder()
    stream.encode("hello wor")
    good = stream._tail.getstate()
    fields = list(STATE.unpack_from(good))
    for index, value in changes.items():
        fields[index] = value
    with pytest.raises(StateError, match="damaged"):
        stream._tail.setstate(STATE.pack(*fields) + good[STATE.size :])
    assert stream._tail.getstate() == good


# Saved by 0.1.0: after b"hello wor", b"ld \xe4\xb8", and after a hypothesis that was resolved.
UNFINISHED = (
    "b98cLVQqA8YanxUa%Ev{ATbJ6uXH^L#_7kN>Q2?lvZ(6D%~sz=k?_Ou7tm;FFtp?5(J49r0RR91000000{{R3000"
    "0000aO40000000;m8000003jhEB000004gdfE000000ssI200000000000000000000000000RR91000001poj50"
    "00000000000000000000000000000009610000W<hT"
)
RESOLVED = (
    "b98cLVQqA8YanxUa%Ev{ATbKT3)93TjM!w_6}D!Qy02${7?;kmTroZApgO0fJRkv3q?4}z1ONa4000001ONa4000"
    "0000aO40000000;m800000d=~%!00000fENG&00000GXMYp0000000000000000RR91000001ONa4000002mk;80"
    "0000000000B-^S000000B`~T0000001E&B0096XW^Zo"
)


def test_states_of_the_first_version_are_read():
    enc = encoding_of("cl100k_base")
    stream = enc.stream_encoder(errors="replace")
    stream.setstate(base64.b85decode(UNFINISHED))
    assert enc.decode(stream.encode(b"\xad!", final=True)) == " 中!"
    stream = enc.stream_encoder()
    stream.setstate(base64.b85decode(RESOLVED))
    whole = enc.encode("\n" + " " * 6000 + "hello world foo bar")
    assert stream.encode(" bar", final=True) == whole[51:]


@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
@pytest.mark.parametrize(
    "text", ["\ud800", "a\ud83d\ude00", "\udce4\udcb8\udcad", "\udc80\ud800\udfffz"]
)
def test_surrogates_are_the_same_in_streams_and_whole_texts(text, errors):
    enc = encoding_of("cl100k_base")
    stream = enc.stream_encoder(errors=errors)
    ids = [id for half in text for id in stream.encode(half)] + stream.flush()
    assert ids == enc.encode(text, errors=errors)
    assert ids == enc.stream_encoder(errors=errors).encode(text, final=True)


@pytest.mark.parametrize("go_on", ["setstate", "pickle", "copy"])
def test_half_a_surrogate_pair_goes_along(go_on):
    enc = encoding_of("cl100k_base")
    stream = enc.stream_encoder()
    ids = stream.encode("a \ud83d")
    if go_on == "setstate":
        other = enc.stream_encoder()
        other.setstate(stream.getstate())
    else:
        other = stream.copy() if go_on == "copy" else pickle.loads(pickle.dumps(stream))
    assert ids + other.encode("\udc4d", final=True) == enc.encode("a \U0001f44d")
    assert ids + stream.flush() == enc.encode("a \ufffd")


def test_escaped_bytes_stay_beside_surrogates_that_are_repaired():
    enc = encoding_of("cl100k_base")
    ids = enc.encode("\udc80\ud800\ud83d\ude00", errors="surrogateescape")
    assert enc.decode_bytes(ids) == b"\x80" + "\ufffd😀".encode()


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (b"\0" * 400, ValueError, "out must be writable"),
        (np.zeros(100, np.uint32)[::2], ValueError, "one contiguous row"),
        (np.zeros((10, 10), np.uint32), ValueError, "one contiguous row"),
        (np.zeros(100, np.int64), ValueError, "uint16 or uint32"),
        (np.zeros(100, np.float32), ValueError, "uint16 or uint32"),
        (np.zeros(100, ">u4"), ValueError, "uint16 or uint32"),
        (bytearray(400), ValueError, "uint16 or uint32"),
        (np.zeros(1, np.uint32), ValueError, "room for 1 ids, 7 are ready"),
        (np.zeros(9, np.uint16), OverflowError, "does not fit into uint16"),
        ([0] * 100, TypeError, "bytes-like"),
    ],
)
def test_a_buffer_that_does_not_fit_changes_nothing(out, error, message):
    stream = encoding_of("cl100k_base").stream_encoder()
    stream.encode("the")
    state = stream.getstate()
    with pytest.raises(error, match=message):
        stream.encode_into(" 中文字符 hello 😀 world again", out)
    assert stream.getstate() == state


# Work per byte is bounded, whatever the text and the vocabulary. These took minutes, or hours.


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u3000", "\v"])
@pytest.mark.parametrize("size", [64, 4096, 1 << 20])
def test_runs_of_blanks_do_not_stop_a_stream(blank, size):
    enc = encoding_of("cl100k_base")
    data = (("\n" + blank * 1150) * 300 + ("x" + blank * 700) * 100).encode()
    stream = enc.stream_encoder()
    ids: list[int] = []
    for i in range(0, len(data), size):
        ids += stream.encode(data[i : i + size])
    assert ids + stream.flush() == enc.encode(data)


@pytest.mark.parametrize("size", [100, 4096])
def test_long_tokens_do_not_stop_a_stream(size):
    texts = ["read me " * 50] * 3 + ["-" * 1000] * 200 + ["=" * 1000 + "\n"] * 50
    enc = Encoding.train_from_iterator(texts, 600, "gpt2")
    assert max(map(len, enc.token_byte_values())) >= 1000
    data = b"-" * 400_000 + b"-=" * 500 + b"=" * 9000
    stream = enc.stream_encoder()
    ids: list[int] = []
    for i in range(0, len(data), size):
        ids += stream.encode(data[i : i + size])
        assert stream.pending < 200_000
    assert ids + stream.flush() == enc.encode(data)


def test_an_interrupted_call_changes_nothing():
    stream = encoding_of("cl100k_base").stream_encoder()
    stream.encode("hello wor")
    state = stream.getstate()
    use_every_look(True)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_the_core(functools.partial(stream.encode, "ld, and so on " * 50_000))
    finally:
        use_every_look(False)
    assert stream.getstate() == state


def test_numbers_of_streams_are_right():
    stream = streamtok.get_encoding("cl100k_base").stream_encoder()
    given = 0
    data = "Zwölf Boxkämpfer jagen 中文 \n\n   x".encode() * 3
    for i, byte in enumerate(data):
        given += len(stream.encode(bytes([byte])))
        assert (stream.bytes_in, stream.tokens_out) == (i + 1, given)
        assert 0 <= stream.pending <= i + 1
