"""Bytes of a surrogate, which are no UTF-8 whatever follows: a str may come behind them at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import streamtok
from streamtok.engines.rules import TextRules
from streamtok.normalizers import Form, Normalizer
from streamtok.surrogates import decode_begun

from ..states.model import completion
from .test_stream_decoder import spaced


def rewriting() -> streamtok.Encoding:
    """An encoding that changes its text: characters are made before the core has bytes."""
    return streamtok.Encoding(
        "rewriting",
        pat_str=r"[\s\S]",
        mergeable_ranks={bytes([i]): i for i in range(256)},
        special_tokens={},
        rules=TextRules(normalizer=Normalizer([Form("NFC")])),
    )


Make = Callable[[], streamtok.Encoding]
ENCODINGS: list[Make] = [lambda: streamtok.get_encoding("gpt2"), spaced, rewriting]
SURROGATES = [b"\xed\xa0", b"\xed\xbf", b"\xed\xa0\xbd\xed\xb8", b"a\xed\xa0"]


@pytest.mark.parametrize("data", SURROGATES)
@pytest.mark.parametrize("before", [b"", b"plain text " * 20])
@pytest.mark.parametrize("make", ENCODINGS)
def test_a_str_follows_in_a_stream(make: Make, before: bytes, data: bytes) -> None:
    enc = make()
    data = before + data
    wanted = enc.encode(data.decode("utf-8", "replace") + "x")
    for cut in {0, len(before), len(before) + 1, len(data) - 1, len(data)}:
        stream = enc.stream_encoder(errors="replace")
        ids = stream.encode(data[:cut]) + stream.encode(data[cut:])
        assert ids + stream.encode("x", final=True) == wanted, cut


@pytest.mark.parametrize("before", [b"", b"plain text " * 20])
@pytest.mark.parametrize("make", ENCODINGS)
def test_strict_streams_refuse_it_at_once(make: Make, before: bytes) -> None:
    for cut in {0, len(before), len(before) + 1}:
        data = before + b"\xed\xa0"
        stream = make().stream_encoder()
        stream.encode(data[:cut])
        with pytest.raises(UnicodeDecodeError, match="invalid continuation byte") as raised:
            stream.encode(data[cut:])
        assert raised.value.start == len(before)


@pytest.mark.parametrize(
    "data", [*SURROGATES, b"\xf0\x9f", b"\xe2\x96", b"\xc3", b"\xed\x9f", b"\xed", b"", b"ab"]
)
def test_what_is_decided(data: bytes) -> None:
    text, rest = decode_begun(data, False, "replace")
    for more in (b"", b"\x80", b"\xbf", b"x", b"\x80\x80"):
        whole = (data + more).decode("utf-8", "replace")
        assert whole == text + (rest + more).decode("utf-8", "replace")
    assert not rest or len((rest + completion(rest)).decode()) == 1
