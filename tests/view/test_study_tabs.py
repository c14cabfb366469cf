"""The tabs Compare and Merges in a browser, against the library."""

from __future__ import annotations

from typing import Any

import streamtok
from streamtok.answers.views.comparison import compare_encodings
from streamtok.answers.views.merges import trace_merges

from .conftest import (
    Open,
    Serve,
    counts,
    excuse,
    opened,
    picture,
    ready,
    token_ids,
    until,
)

ENC = streamtok.get_encoding("cl100k_base")
TEXT = "Tokenization differs: naïve 東京 and antidisestablishmentarianism <b>&amp;</b>\n"


def test_compare(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "compare")
    names = ["cl100k_base", "r50k_base", "o200k_base"]
    encodings = [streamtok.get_encoding(name) for name in names]
    found = compare_encodings(encodings, TEXT)
    assert page.locator("#compare-columns h2").all_inner_texts() == names
    for i, encoding in enumerate(encodings, 1):
        column = f"#compare-columns > :nth-child({i})"
        assert token_ids(page, f"{column} .t") == encoding.encode(TEXT)
        assert f"{len(encoding.encode(TEXT))} tokens" in page.inner_text(f"{column} .note")
    same = sum(segment.is_same for segment in found.segments)
    expected = [f"{one:,}" for one in (found.agreeing, found.differing, same)]
    assert list(counts(page, "compare").values()) == expected
    assert page.locator("#compare-columns > :first-child .t:not(.differs)").count() == same
    assert page.locator("#compare-columns b").count() == 0
    picture(page, "compare")
    page.select_option("#compare-3", "o200k_harmony")
    until(page, "document.querySelectorAll('#compare-columns h2').length === 4")
    for number in (1, 2, 3):
        page.select_option(f"#compare-{number}", "")
    until(page, "document.querySelectorAll('#compare-columns h2').length === 1")
    assert page.locator("#compare-columns .differs").count() == 0
    page.select_option("#encoding", "gpt2")
    until(page, "document.querySelector('#compare-columns h2').textContent === 'gpt2'")


def test_compare_with_special_tokens(open_page: Open, serve: Serve) -> None:
    url = serve(text="a <|endoftext|>")
    page = opened(open_page, url, "compare")
    page.select_option("#special", "refuse")
    page.wait_for_selector("#panel-compare[data-state=failed]")
    assert "<|endoftext|>" in page.inner_text("#error")
    assert page.locator("#compare-columns h2, #compare-counts dd").count() == 0
    page.select_option("#special", "allow")
    ready(page, "compare")
    assert page.is_hidden("#error")
    assert page.locator("#compare-columns .special").count() == 3
    excuse(page, " 422 ")


def show(page: Any, text: str) -> None:
    """Write the text in the tab Text, and go to Merges."""
    page.click("#tab-text")
    page.fill("#text-box", text)
    page.click("#tab-merges")
    page.wait_for_selector("#panel-merges[data-state=ready], #panel-merges[data-state=failed]")


def test_merges(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "merges")
    text = "x naïve東"
    show(page, text)
    ready(page, "merges")
    pretokens = page.locator("#merges-pretokens .t").evaluate_all(
        "all => all.map((box) => [box.textContent, box.token.id])"
    )
    parts = ["x", " naïve東"]
    assert pretokens == [
        [part.replace(" ", "·"), ", ".join(map(str, ENC.encode(part)))] for part in parts
    ]
    trace = trace_merges(ENC, parts[1])
    assert trace.merges > 2
    assert trace.stale > 0
    assert page.locator("#merges-pretokens .chosen").inner_text() == "·naïve東"
    for step in trace.steps:
        page.click("#merges-step")
        shown = page.locator("#merges-parts .t").all_inner_texts()
        assert shown == [part.shown for part in step.parts]
        rows = page.locator("#merges-heap tbody tr")
        assert rows.count() == len(step.heap)
        if step.heap:
            assert rows.first.locator("td").first.inner_text() == str(step.heap[0].rank)
        stale = sum(entry.is_stale for entry in step.heap)
        assert page.locator("#merges-heap tr.stale").count() == stale
        words = {"pushed": "Pair added", "stale": "Pair dropped", "merged": "Pair merged"}
        assert words[step.kind] in page.inner_text("#merges-what")
        if step is trace.steps[-5]:
            picture(page, "merges")
    assert ", ".join(map(str, trace.ids)) in page.inner_text("#merges-what")
    assert token_ids(page, "#merges-parts .t") == trace.ids
    page.click("#merges-back")
    assert f"Step {len(trace.steps) - 1} of" in page.inner_text("#merges-what")
    page.hover("#merges-pretokens .t >> nth=1")
    assert f"pre-token 1: ids {', '.join(map(str, trace.ids))}" in page.inner_text("#merges-detail")
    page.focus("#merges-pretokens .t >> nth=0")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#merges-what').textContent.startsWith('No pair merges')")
    assert page.locator("#merges-pretokens .chosen").inner_text() == "x"


def test_the_longest_pretokens(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "merges")
    show(page, "x" * 120)
    assert page.locator("#merges-parts .t").count() == 120
    page.click("#merges-merge")
    assert "Pair merged" in page.inner_text("#merges-what")
    show(page, "é" * 61)
    until(page, "document.querySelector('#error').textContent.includes('has 122 bytes')")
    assert page.locator("#merges-parts .t").count() == 0
    assert page.inner_text("#merges-what") == ""
    show(page, "")
    assert page.is_hidden("#error")
    assert page.locator("#merges-pretokens .t").count() == 0
    excuse(page, " 400 ")
