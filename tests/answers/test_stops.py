"""Stop strings: found wherever ids are cut, never shown in part, at the right place."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok import StateError
from streamtok.answers.stops import Stop

ENC = streamtok.get_encoding("gpt2")


def slowly(text: str, stops: list[str]) -> tuple[str, Stop | None]:
    """What a decoder gives that sees all of the text at once."""
    places = [(text.find(stop), len(stop), stop) for stop in stops if stop in text]
    if not places:
        return text, None
    start, _, stop = min(places)
    return text[:start], Stop(stop, start)


def seen(decoder: Any) -> Any:
    """All that a decoder is."""
    return decoder._reached(), decoder.stopped, decoder.held, decoder.tokens_in


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_cut_gives_what_the_whole_gives(data: st.DataObject) -> None:
    letters = st.text(alphabet="aab\n😀é", min_size=1, max_size=4)
    stops = data.draw(st.lists(letters, min_size=1, max_size=4))
    text = data.draw(st.text(alphabet="aab\n😀éx", max_size=30))
    ids = [ENC.encode_single_token(bytes([byte])) for byte in text.encode()]  # any cut
    wanted = slowly(text, stops)
    decoder = ENC.stream_decoder(stop=stops)
    for _ in range(2):  # it can be used again
        found, at = "", 0
        while at < len(ids):
            end = at + data.draw(st.integers(1, 6))
            found += decoder.decode(ids[at:end])
            assert wanted[0].startswith(found)
            known = seen(decoder)
            decoder = decoder.copy()
            assert seen(decoder) == known
            at = end
        found += decoder.flush()
        assert (found, decoder.stopped) == wanted


def test_what_is_not_a_beginning_is_given_at_once() -> None:
    decoder = ENC.stream_decoder(stop=["\n\nHuman:", "###"])
    assert decoder.decode(ENC.encode("some text")) == "some text"
    assert decoder.decode(ENC.encode(" and #")) == " and "
    assert decoder.held == "#"
    assert decoder.decode(ENC.encode(" 1")) == "# 1"
    assert decoder.stopped is None
    assert decoder.decode(ENC.encode(".\n\nHuman: hi")) == "."
    assert decoder.stopped == Stop("\n\nHuman:", 18)
    assert decoder.decode(ENC.encode("more")) == ""
    assert decoder.flush() == ""
    assert decoder.stopped == Stop("\n\nHuman:", 18)  # until the next stream begins
    assert decoder.decode(ENC.encode("x")) == "x"
    assert decoder.stopped is None


def test_special_tokens_are_skipped_or_shown() -> None:
    ids = [*ENC.encode("one st"), ENC.eot_token, *ENC.encode("op two")]
    assert ENC.stream_decoder(stop="stop", skip_special_tokens=True).decode(ids) == "one "
    shown = ENC.stream_decoder(stop="<|endoftext|>")
    assert shown.decode(ids) == "one st"
    assert shown.stopped == Stop("<|endoftext|>", 6)


def test_a_call_that_raises_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder: Any = ENC.stream_decoder(stop="stop", errors="strict")
    decoder.decode(ENC.encode("so st"))
    before = seen(decoder)
    for bad in ([10**6], ["x"], [ENC.encode_single_token(b"\xff")], 5):
        with pytest.raises((KeyError, TypeError, UnicodeDecodeError)):
            decoder.decode(bad)
        assert seen(decoder) == before

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    decoder._finds = interrupted
    with pytest.raises(KeyboardInterrupt):
        decoder.decode(ENC.encode("op"))
    decoder._finds = re.compile("stop").search
    assert seen(decoder) == before
    assert decoder.decode(ENC.encode("op it")) == ""
    assert decoder.stopped == Stop("stop", 3)


def test_what_it_does_not_give() -> None:
    decoder: Any = ENC.stream_decoder(stop=["stop"])
    for save in (decoder.getstate, lambda: pickle.dumps(decoder)):
        with pytest.raises(StateError, match="stop strings cannot be saved"):
            save()
    with pytest.raises(TypeError, match="gives text"):
        decoder.decode_bytes([1])
