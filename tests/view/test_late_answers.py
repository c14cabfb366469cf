"""Answers that come late: what is shown is always the answer to the last question."""

from __future__ import annotations

import time
from typing import Any

import pytest

import streamtok
from streamtok.views.merges import trace_merges

from .conftest import TIMEOUT, Open, excuse, ready, set_size, token_ids, until

TEXT = "Hello world, naïve café, tokenization"


def hold_first(page: Any, path: str) -> list[Any]:
    """Hold the next question to a path back; later ones pass. The list gets the one that waits."""
    held: list[Any] = []

    def on_question(route: Any) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route(f"**/api/{path}", on_question)
    return held


def wait_for(page: Any, held: list[Any]) -> None:
    """Wait until the question that is to wait has been asked."""
    end = time.monotonic() + TIMEOUT / 1000
    while not held:
        assert time.monotonic() < end, "the page has not asked"
        page.wait_for_timeout(10)


def answer(page: Any, held: list[Any]) -> None:
    """Let the question that waits pass, and wait until the page has its answer."""
    with page.expect_response(held[0].request.url) as found:
        held[0].continue_()
    found.value.finished()
    page.wait_for_timeout(200)  # what the page would do with it is done by now


def test_a_text_that_is_opened(open_page: Open, url: str) -> None:
    page = open_page(url)
    ready(page, "text")
    held = hold_first(page, "text")
    page.select_option("#encoding", "gpt2")
    wait_for(page, held)
    page.select_option("#encoding", "o200k_base")
    answer(page, held)
    ready(page, "text")
    assert token_ids(page, "#text-tokens .t") == streamtok.get_encoding("o200k_base").encode(TEXT)
    page.fill("#text-box", "and edited")
    ready(page, "text")
    assert token_ids(page, "#text-tokens .t") == streamtok.get_encoding("o200k_base").encode(
        "and edited"
    )


def test_a_text_that_could_not_be_opened(open_page: Open, url: str) -> None:
    page = open_page(url)
    ready(page, "text")
    held = hold_first(page, "text")
    page.select_option("#encoding", "gpt2")
    wait_for(page, held)
    page.select_option("#encoding", "o200k_base")
    held[0].abort()
    ready(page, "text")
    assert token_ids(page, "#text-tokens .t") == streamtok.get_encoding("o200k_base").encode(TEXT)
    assert page.is_hidden("#error")
    excuse(page, "net::ERR_FAILED")


@pytest.mark.parametrize("sizes", [(1, 5), (1, 3)], ids=["another size", "the size before"])
def test_a_stream(open_page: Open, url: str, sizes: tuple[int, int]) -> None:
    page = open_page(url)
    page.click("#tab-stream")
    ready(page, "stream")
    set_size(page, 3)
    ready(page, "stream")
    held = hold_first(page, "stream")
    set_size(page, sizes[0])
    wait_for(page, held)
    set_size(page, sizes[1])
    ready(page, "stream")
    answer(page, held)
    number = -(-len(TEXT.encode()) // sizes[1])
    assert page.inner_text("#stream-feed") == f"0 of {number} chunks"


def compared(open_page: Open, url: str) -> tuple[Any, list[Any]]:
    """The tab Compare with the second of two questions answered, and the first one that waits."""
    page = open_page(url)
    page.click("#tab-compare")
    ready(page, "compare")
    held = hold_first(page, "compare")
    page.select_option("#compare-1", "gpt2")
    wait_for(page, held)
    page.select_option("#compare-1", "p50k_base")
    ready(page, "compare")
    return page, held


def test_a_comparison(open_page: Open, url: str) -> None:
    page, held = compared(open_page, url)
    answer(page, held)
    assert page.inner_text("#compare-columns h2 >> nth=1") == "p50k_base"


def test_a_comparison_that_fails_late(open_page: Open, url: str) -> None:
    page, held = compared(open_page, url)
    held[0].abort()
    page.wait_for_timeout(200)
    assert page.get_attribute("#panel-compare", "data-state") == "ready"
    assert page.inner_text("#compare-columns h2 >> nth=1") == "p50k_base"
    assert page.is_hidden("#error")
    excuse(page, "net::ERR_FAILED")


def test_merges(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.click("#tab-merges")
    ready(page, "merges")
    held = hold_first(page, "merges")
    page.click("#merges-pretokens .t:has-text('naïve')")
    wait_for(page, held)
    page.click("#merges-pretokens .t:has-text('café')")
    ready(page, "merges")
    answer(page, held)
    trace = trace_merges(streamtok.get_encoding("cl100k_base"), " café")
    page.click("#merges-end")
    assert token_ids(page, "#merges-parts .t") == trace.ids


def test_pretokens(open_page: Open, url: str) -> None:
    page = open_page(url)
    held = hold_first(page, "pretokens")
    page.click("#tab-merges")
    wait_for(page, held)
    page.click("#tab-text")
    page.fill("#text-box", "quite another one")
    page.click("#tab-merges")
    boxes = "[...document.querySelectorAll('#merges-pretokens .t')]"
    words = f"{boxes}.map((one) => one.textContent).join()"
    until(page, f"{words} === 'quite,·another,·one'")
    answer(page, held)
    assert page.evaluate(words) == "quite,·another,·one"


def test_languages(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.click("#tab-languages")
    ready(page, "languages")
    held = hold_first(page, "languages")
    page.check("#languages-choices [value=gpt2]")
    wait_for(page, held)
    page.uncheck("#languages-choices [value=gpt2]")
    ready(page, "languages")
    answer(page, held)
    assert "gpt2" not in page.inner_text("#languages-caption")


def test_a_search(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.click("#tab-vocabulary")
    held = hold_first(page, "vocabulary/search")
    page.fill("#vocabulary-query", "token")
    page.press("#vocabulary-query", "Enter")
    wait_for(page, held)
    page.fill("#vocabulary-query", "caf")
    page.press("#vocabulary-query", "Enter")
    ready(page, "vocabulary")
    answer(page, held)
    assert "caf" in page.inner_text("#vocabulary-found li >> nth=0")


def test_a_token_of_another_encoding(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.click("#tab-vocabulary")
    page.fill("#vocabulary-query", "token")
    page.press("#vocabulary-query", "Enter")
    ready(page, "vocabulary")
    page.fill("#vocabulary-query", "")
    held = hold_first(page, "vocabulary/token")
    page.click("#vocabulary-found button >> nth=1")
    wait_for(page, held)
    page.select_option("#encoding", "gpt2")
    answer(page, held)
    assert page.get_attribute("#panel-vocabulary", "data-state") == "ready"
    assert page.inner_text("#vocabulary-token") == ""
    assert page.locator("#vocabulary-found li").count() == 0
