"""Bytes of a surrogate, which are no UTF-8 whatever follows: a str may come behind them at once."""

from __future__ import annotations

import pytest

import streamtok
from streamtok.surrogates import decode_replacing

from ..states.model import completion
from ..trained import counted
from .test_stream_decoder import spaced

SURROGATES = [b"\xed\xa0", b"\xed\xbf", b"\xed\xa0\xbd\xed\xb8", b"a\xed\xa0"]


@pytest.mark.parametrize("data", SURROGATES)
@pytest.mark.parametrize("make", [lambda: streamtok.get_encoding("gpt2"), spaced])
def test_a_str_follows_in_a_stream(make, data: bytes) -> None:
    enc = make()
    wanted = enc.encode(data.decode("utf-8", "replace") + "x")
    for cut in range(len(data) + 1):
        stream = enc.stream_encoder(errors="replace")
        ids = stream.encode(data[:cut]) + stream.encode(data[cut:])
        assert ids + stream.encode("x", final=True) == wanted, cut


@pytest.mark.parametrize("data", SURROGATES)
def test_a_str_follows_in_a_trainer(data: bytes) -> None:
    wanted = counted([data.decode("utf-8", "replace") + "x"], errors="replace")
    for cut in range(len(data) + 1):
        trainer = streamtok.Trainer(errors="replace")
        for chunk in (data[:cut], data[cut:]):
            trainer.update(chunk)
        trainer.update("x", final=True)
        assert trainer.piece_counts() == wanted.piece_counts(), cut


@pytest.mark.parametrize(
    "data", [*SURROGATES, b"\xf0\x9f", b"\xe2\x96", b"\xc3", b"\xed\x9f", b"\xed", b"", b"ab"]
)
def test_what_is_decided(data: bytes) -> None:
    text, rest = decode_replacing(data, False)
    for more in (b"", b"\x80", b"\xbf", b"x", b"\x80\x80"):
        whole = (data + more).decode("utf-8", "replace")
        assert whole == text + (rest + more).decode("utf-8", "replace")
    assert not rest or len((rest + completion(rest)).decode()) == 1
