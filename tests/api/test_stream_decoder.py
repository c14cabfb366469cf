"""`StreamDecoder`: a call that fails has changed nothing, and one call at a time."""

from __future__ import annotations

import codecs
import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok.engines.rules import TextRules
from streamtok.errors import StateError, StreamInUseError

ENC = streamtok.get_encoding("gpt2")
HALF = ENC.encode("é")  # one token
SPLIT = ENC.encode("🎉")  # tokens that end inside the character


def state(decoder: streamtok.StreamDecoder) -> tuple[Any, ...]:
    return decoder.tokens_in, decoder.bytes_out, decoder.pending, decoder.getstate()


def spaced() -> streamtok.Encoding:
    known = streamtok.get_encoding("gpt2")
    rules = TextRules(normalizer="spaces", space_first=True)
    return streamtok.Encoding(
        "spaced",
        pat_str=known.pattern,
        mergeable_ranks=known._vocabulary,
        special_tokens={"<s>": 60_002},
        rules=rules,
    )


class Index:
    def __init__(self, act: Callable[[], Any], value: int = 65) -> None:
        self.act, self.value = act, value

    def __index__(self) -> int:
        self.act()
        return self.value


@pytest.mark.parametrize("method", ["decode", "decode_bytes"])
def test_any_iterable_is_read_once(method: str) -> None:
    """A generator was decoded, and then it raised when it was asked for its length."""
    ids = ENC.encode("one two three")
    for kind in (iter, tuple, list, np.array, set, memoryview, lambda x: (i for i in x)):
        source = np.array(ids, np.uint32) if kind is memoryview else ids
        decoder = ENC.stream_decoder()
        given = kind(source)  # type: ignore[operator]
        expected = ENC.decode(set(ids) if kind is set else ids)
        found = getattr(decoder, method)(given)
        assert found == (expected if method == "decode" else expected.encode())
        assert decoder.tokens_in == len(ids)
        assert decoder.bytes_out == len(expected)


def test_a_half_character_outlives_what_fails() -> None:
    assert len(SPLIT) > 1
    decoder = ENC.stream_decoder(errors="strict")
    assert decoder.decode(SPLIT[:1]) == ""
    before = state(decoder)
    assert decoder.pending > 0

    def stop() -> Any:
        raise KeyboardInterrupt

    class Breaks:
        def __iter__(self) -> Any:
            yield SPLIT[1]
            stop()

    wrong: list[tuple[Any, type[BaseException]]] = [
        ([60_000], KeyError),
        ([-1], OverflowError),
        ([1 << 40], OverflowError),
        (["x"], TypeError),
        ([None], TypeError),
        (5, TypeError),
        (None, TypeError),
        (Breaks(), KeyboardInterrupt),
        ([SPLIT[1], Index(stop)], KeyboardInterrupt),
        (np.zeros((2, 2), np.uint32), TypeError),
        (np.zeros(()), TypeError),
        (np.zeros(3), TypeError),
        (ENC.encode("plain"), UnicodeDecodeError),
    ]
    for ids, error in wrong:
        for final in (False, True):
            with pytest.raises(error):
                decoder.decode(ids, final)
            assert state(decoder) == before
    for ids in ([], SPLIT[1:]):
        with pytest.raises(ValueError, match="unfinished character wait"):
            decoder.decode_bytes(ids)
        assert state(decoder) == before
    with pytest.raises(UnicodeDecodeError):
        decoder.flush()
    assert state(decoder) == before
    assert decoder.decode(SPLIT[1:]) == "🎉"


def test_errors_say_where_in_the_stream() -> None:
    decoder = ENC.stream_decoder(errors="strict")
    decoder.decode(ENC.encode("ab") + SPLIT[:1])
    with pytest.raises(UnicodeDecodeError) as caught:
        decoder.decode(ENC.encode("plain"))
    assert caught.value.start == 2
    with pytest.raises(KeyError, match=r"position 1\): token 3 of the stream"):
        decoder.decode([65, 60_000])


def test_a_second_call_raises_and_changes_nothing() -> None:
    decoder = ENC.stream_decoder()
    saved = decoder.getstate()
    refused: list[str] = []

    def call_again() -> None:
        for call in (
            lambda: decoder.decode([65]),
            lambda: decoder.decode_bytes([65]),
            decoder.flush,
            decoder.reset,
            decoder.copy,
            decoder.getstate,
            lambda: decoder.setstate(saved),
            lambda: pickle.dumps(decoder),
        ):
            with pytest.raises(StreamInUseError):
                call()
            refused.append("refused")

    def from_another_thread() -> None:
        thread = threading.Thread(target=call_again)
        thread.start()
        thread.join()

    for act in (call_again, from_another_thread):
        refused.clear()
        assert decoder.decode([32, Index(act, 33), 34]) == ENC.decode([32, 33, 34])
        assert len(refused) == 8
        assert decoder.decode_bytes([Index(act, 33)], final=True) == ENC.decode_bytes([33])
        assert len(refused) == 16
        assert (decoder.tokens_in, decoder.bytes_out) == (0, 0)


def test_a_handler_that_calls_the_decoder() -> None:
    seen: list[BaseException] = []

    def handler(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        try:
            decoder.decode([65])
        except StreamInUseError as refused:
            seen.append(refused)
        return "?", error.end

    codecs.register_error("streamtok-test-calls", handler)
    decoder = ENC.stream_decoder(errors="streamtok-test-calls")
    assert decoder.decode(SPLIT[:1]) + decoder.decode([65]) == "?" + ENC.decode([65])
    assert len(seen) == 1


@pytest.mark.parametrize("errors", ["replace", "strict", "ignore", "surrogatepass"])
def test_states_of_every_step_load_again(errors: str) -> None:
    for enc in (ENC, spaced()):
        ids = enc.encode(" a\u00e9 日本 🎉 ") + SPLIT
        expected = enc.decode(ids)
        decoder = enc.stream_decoder(errors=errors)
        text = ""
        for id in ids:
            text += decoder.decode([id])
            other = enc.stream_decoder(errors=errors)
            other.setstate(decoder.getstate())
            loaded = pickle.loads(pickle.dumps(decoder))
            assert state(other) == state(loaded) == state(decoder) == state(decoder.copy())
            decoder = loaded
        assert text + decoder.flush() == expected


def test_states_that_are_no_states() -> None:
    from streamtok.chunker import _seal

    decoder = ENC.stream_decoder()
    decoder.decode(SPLIT[:1])
    before = state(decoder)
    counters = (5).to_bytes(8, "little") * 2
    for held in (b"a", b"\x80", b"\xff", "é".encode(), b"\xf0\x9f\x8e\x89"):
        with pytest.raises(StateError):
            decoder.setstate(_seal(bytes.fromhex(ENC.digest) + counters + held))
        assert state(decoder) == before


def by_steps(stream: Any) -> Any:
    """The stream's chain, without the core's tables: its calls of the tail can be seen."""
    chain = copy.copy(stream._chain)
    chain.transform = None
    return chain


def test_two_threads_in_a_stream_with_spaces() -> None:
    """Whoever comes second finds another state than it prepared its call for, and is refused."""
    enc = spaced()
    for name in ("encode", "flush", "reset"):
        stream = enc.stream_encoder()
        ids = stream.encode("a word\u2581and")
        other = stream.copy()
        real = stream._tail

        class Slow:
            """The tail, and before one call one that another thread makes."""

            def __getattr__(self, name: str, real: Any = real) -> Any:
                return getattr(real, name)

            def encode_parts(self, *args: Any, real: Any = real, one: Any = stream) -> Any:
                call(one)
                return real.encode_parts(*args)

        def call(one: Any, name: str = name) -> None:
            args = [" another thread's"] if name == "encode" else []
            thread = threading.Thread(target=getattr(one, name), args=args)
            thread.start()
            thread.join()

        slow: Any = Slow()
        with pytest.raises(StreamInUseError):
            by_steps(stream).encode(slow, " more of it", False, "list", None, 100)
        call(other)
        assert stream.getstate() == other.getstate(), name
        assert ids == enc.encode("a word\u2581and")[: len(ids)]


def test_what_interrupts_a_stream_with_spaces_has_not_happened_or_happened() -> None:
    """A handler of a signal raises right behind the tail's call: nothing is in between."""
    enc = spaced()
    text = "a word\u2581and another\u2581 end"
    for happened in (False, True):
        for size in (1, 3, 8):
            stream = enc.stream_encoder()
            data, ids, at = text.encode(), [], 0
            real = stream._tail

            class Broken:
                lost: Any = None

                def __getattr__(self, name: str) -> Any:
                    return getattr(real, name)  # noqa: B023

                def encode_parts(self, *args: Any) -> Any:
                    if happened:  # noqa: B023
                        self.lost = real.encode_parts(*args)  # noqa: B023
                    raise KeyboardInterrupt

            while at < len(data):
                broken: Any = Broken()
                before = stream.bytes_in
                with pytest.raises(KeyboardInterrupt):
                    by_steps(stream).encode(broken, data[at : at + size], False, "list", None, 100)
                if stream.bytes_in == before:
                    ids += stream.encode(data[at : at + size])
                else:
                    assert happened
                    ids += broken.lost
                at += size
                assert stream.bytes_in == min(at, len(data))
            assert ids + stream.flush() == enc.encode(text)
