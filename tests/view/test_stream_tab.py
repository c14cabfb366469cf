"""The tab Stream in a browser: the two lanes, step by step, against the library's numbers."""

from __future__ import annotations

import streamtok
from streamtok.answers.views.lanes import make_lanes

from .conftest import (
    Open,
    Serve,
    counts,
    opened,
    picture,
    ready,
    set_size,
    token_ids,
    until,
)
from .page_server import STREAM_TEXT as TEXT

ENC = streamtok.get_encoding("cl100k_base")


def test_every_step(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "stream")
    lanes = make_lanes(ENC, TEXT, 8)
    naive: list[int] = []
    wrong: list[int] = []
    exact: list[int] = []
    for number, chunk in enumerate(lanes.chunks, 1):
        page.click("#stream-step")
        naive += [one.token.id for one in chunk.naive]
        wrong += [one.token.id for one in chunk.naive if one.is_wrong]
        exact += [one.token.id for one in chunk.exact]
        assert token_ids(page, "#naive-tokens .t") == naive
        assert token_ids(page, "#naive-tokens .t.wrong") == wrong
        assert token_ids(page, "#exact-tokens .t") == exact
        held = page.locator("#exact-tokens .pending").all_inner_texts()
        assert held == ([chunk.pending_shown] if chunk.pending else [])
        assert list(counts(page, "stream").values())[-1] == str(chunk.pending)
        reasons = {one.reason for one in chunk.exact}
        why = page.inner_text("#stream-why")
        assert ("certificate" in why) == ("certificate" in reasons)
        assert ("pre-token complete" in why) == ("closed" in reasons)
        assert ("end of the text" in why) == ("end" in reasons)
        if number == 5:
            picture(page, "stream")
            picture(page, "lanes", "#naive-title", "#stream-why")
    assert exact == ENC.encode(TEXT)
    assert wrong
    assert "🎉" in page.inner_text("#exact-tokens .sign >> nth=-1")
    page.hover("#naive-tokens .wrong >> nth=0")
    assert "the whole text does not have this id here" in page.inner_text("#stream-detail")
    page.hover("#exact-tokens .t >> nth=0")
    assert "pre-token is complete" in page.inner_text("#stream-detail")
    assert page.is_disabled("#stream-step")
    page.click("#stream-back")
    assert token_ids(page, "#exact-tokens .t") == exact[: -len(lanes.chunks[-1].exact)]


def test_play_and_pause(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "stream")
    set_size(page, 1)  # many steps: it is not at its end before it is paused
    ready(page, "stream")
    page.click("#stream-play")
    assert page.inner_text("#stream-play") == "Pause"
    until(page, "document.querySelectorAll('#exact-tokens .t').length > 0")
    page.click("#stream-play")
    assert page.inner_text("#stream-play") == "Play"
    found = token_ids(page, "#exact-tokens .t")
    assert 0 < len(found) < len(ENC.encode(TEXT))
    assert found == ENC.encode(TEXT)[: len(found)]
    set_size(page, 64)
    ready(page, "stream")
    page.click("#stream-play")
    until(page, "document.querySelector('#stream-play').textContent === 'Play'")
    assert token_ids(page, "#exact-tokens .t") == ENC.encode(TEXT)


def test_a_certificate(open_page: Open, serve: Serve) -> None:
    """A pre-token that is open for long: ids go before it ends."""
    text = "=" * 3000 + "a"
    url = serve(text=text)
    page = opened(open_page, url, "stream")
    set_size(page, 64)
    ready(page, "stream")
    page.click("#stream-end")
    assert token_ids(page, "#exact-tokens .t") == ENC.encode(text)
    assert page.locator("#exact-tokens .certificate").count() > 0
    page.hover("#exact-tokens .certificate >> nth=0")
    assert "a certificate shows" in page.inner_text("#stream-detail")


def test_another_text_and_encoding(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "stream")
    page.select_option("#encoding", "gpt2")
    ready(page, "stream")
    page.click("#stream-end")
    assert token_ids(page, "#exact-tokens .t") == streamtok.get_encoding("gpt2").encode(TEXT)
    page.click("#tab-text")
    page.fill("#text-box", "short")
    page.click("#tab-stream")
    until(page, "document.querySelector('#stream-feed').textContent.includes('of 1 chunks')")
    page.click("#stream-end")
    assert token_ids(page, "#exact-tokens .t") == streamtok.get_encoding("gpt2").encode("short")
