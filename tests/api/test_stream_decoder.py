"""`StreamDecoder`: a call that fails has changed nothing, and one call at a time."""

from __future__ import annotations

import codecs
import copy
import threading
from typing import Any

import pytest

import streamtok
from streamtok._core.encode import LIST
from streamtok.engines.rules import TextRules
from streamtok.errors import StateError, StreamInUseError

ENC = streamtok.get_encoding("gpt2")
SPLIT = ENC.encode("🎉")  # tokens that end inside the character


def state(decoder: streamtok.StreamDecoder) -> tuple[Any, ...]:
    return decoder.tokens_in, decoder.bytes_out, decoder.pending, decoder.getstate()


def spaced() -> streamtok.Encoding:
    known = streamtok.get_encoding("gpt2")
    rules = TextRules(normalizer="spaces", space_first=True)
    return streamtok.Encoding(
        "spaced",
        pat_str=known.pattern,
        mergeable_ranks=known.definition.vocabulary,
        special_tokens={"<s>": 60_002},
        rules=rules,
    )


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


def test_states_that_are_no_states() -> None:
    from streamtok.chunker import seal

    decoder = ENC.stream_decoder()
    decoder.decode(SPLIT[:1])
    before = state(decoder)
    counters = (5).to_bytes(8, "little") * 2
    for held in (b"a", b"\x80", b"\xff", "é".encode(), b"\xf0\x9f\x8e\x89"):
        with pytest.raises(StateError):
            decoder.setstate(seal(bytes.fromhex(ENC.digest) + counters + held))
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
            by_steps(stream).encode(slow, " more of it", False, LIST, 100)
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
                    by_steps(stream).encode(broken, data[at : at + size], False, LIST, 100)
                if stream.bytes_in == before:
                    ids += stream.encode(data[at : at + size])
                else:
                    assert happened
                    ids += broken.lost
                at += size
                assert stream.bytes_in == min(at, len(data))
            assert ids + stream.flush() == enc.encode(text)
