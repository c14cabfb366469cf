"""Both lanes of a stream: the numbers of `streamtok bench`, and ids against the slow way."""

from __future__ import annotations

import json

import pytest

import streamtok
from streamtok.answers.views.lanes import Lanes, make_lanes
from streamtok.cli.measure import measure
from streamtok.errors import UnsupportedPatternError

from ...encodings import make_encoding

TEXT = "Streaming tokenizers, 12345 words… naïve café: 東京 и Москва 🎉\n"


def check(lanes: Lanes, enc: streamtok.Encoding, data: bytes) -> None:
    """What can be found out in another way; `test_views_of_all_kinds.py` does it for wrong ids."""
    ids = enc.encode(data, disallowed_special=())
    *chunks, end = lanes.chunks
    assert [one.token.id for chunk in lanes.chunks for one in chunk.exact] == ids
    assert b"".join(data[chunk.start : chunk.stop] for chunk in chunks) == data
    assert (end.start, end.stop, end.pending, end.naive) == (len(data), len(data), 0, [])
    reached = 0
    stream = enc.stream_encoder(disallowed_special=())
    for chunk in chunks:
        part = data[chunk.start : chunk.stop]
        naive = enc.encode(part.decode("utf-8", "replace"), disallowed_special=())
        assert [one.token.id for one in chunk.naive] == naive
        assert chunk.is_broken == (enc.decode_bytes(naive) != part)
        assert [one.token.id for one in chunk.exact] == stream.encode(part)
        for one in chunk.exact:
            assert one.start == reached
            assert data[one.start : one.stop] == one.token.bytes
            assert one.stop <= chunk.stop
            reached = one.stop
        assert chunk.pending == stream.pending
        assert chunk.pending == chunk.stop - reached
    assert {one.reason for one in end.exact} <= {"end"}
    assert "end" not in {one.reason for chunk in chunks for one in chunk.exact}
    assert lanes.wrong_tokens == sum(one.is_wrong for chunk in chunks for one in chunk.naive)
    assert lanes.broken_chunks == sum(chunk.is_broken for chunk in chunks)


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_numbers_are_those_of_bench(size):
    data = (TEXT * 20).encode()
    enc = streamtok.get_encoding("cl100k_base")
    lanes = make_lanes(enc, data, size)
    check(lanes, enc, data)
    rows = {row.way: row for row in measure(data, enc, (size,), rounds=1)}
    naive, exact = rows["naive"], rows["incremental"]
    assert (lanes.tokens, 0) == (exact.tokens, exact.wrong_tokens)
    for name in ("wrong_tokens", "cuts", "cuts_inside_tokens", "broken_chunks"):
        assert getattr(lanes, name) == getattr(naive, name), name
    assert lanes.naive_tokens == naive.tokens
    assert json.loads(json.dumps(lanes.as_json())) == lanes.as_json()


def test_an_open_pretoken_needs_a_certificate():
    enc = streamtok.get_encoding("cl100k_base")
    lanes = make_lanes(enc, "a" * 5000 + " b", 64)
    reasons = {one.reason for chunk in lanes.chunks for one in chunk.exact}
    assert reasons == {"certificate", "closed", "end"}
    words = make_lanes(enc, "to be or not to be " * 20, 32)
    assert "certificate" not in {one.reason for chunk in words.chunks for one in chunk.exact}
    certain = [one for chunk in lanes.chunks for one in chunk.exact if one.reason == "certificate"]
    assert all(set(one.token.bytes) == {ord("a")} for one in certain)


def test_a_cut_character_moves_nothing_behind_it():
    enc = streamtok.get_encoding("cl100k_base")
    lanes = make_lanes(enc, "abc é is a letter", 5)  # a cut in é: a byte of it is U+FFFD there
    first, second, *_ = lanes.chunks
    assert (first.naive[0].token.shown, first.naive[0].is_wrong) == ("abc", False)
    places = {one.token.shown: (one.start, one.is_wrong) for one in second.naive}
    assert places["·is"] == (6, False)


def test_what_is_refused():
    enc = streamtok.get_encoding("gpt2")
    with pytest.raises(UnicodeDecodeError):
        make_lanes(enc, b"\xff", 5)
    for size in (0, -1):
        with pytest.raises(ValueError, match="chunk_size"):
            make_lanes(enc, "a", size)
    with pytest.raises(UnsupportedPatternError):
        make_lanes(make_encoding(r"(?<=a)b|."), "ab", 1)
