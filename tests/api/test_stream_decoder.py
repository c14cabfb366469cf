"""`StreamDecoder`: a call that fails has changed nothing, and one call at a time."""

from __future__ import annotations

import codecs
from typing import Any

import pytest

import streamtok
from streamtok.errors import StateError, StreamInUseError

ENC = streamtok.get_encoding("gpt2")
SPLIT = ENC.encode("🎉")  # tokens that end inside the character


def state(decoder: streamtok.StreamDecoder) -> tuple[Any, ...]:
    return decoder.tokens_in, decoder.bytes_out, decoder.pending, decoder.getstate()


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
