"""The tab Compare in a browser, against the library."""

from __future__ import annotations

import streamtok
from streamtok.answers.views.comparison import compare_encodings

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
    names = ["cl100k_base", "o200k_base", "r50k_base"]
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
    for choice in ("#beside", "#compare-2", "#compare-3"):
        page.select_option(choice, "")
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
    assert page.locator("#compare-columns h2:visible, #compare-counts dd:visible").count() == 0
    page.select_option("#special", "allow")
    ready(page, "compare")
    assert page.is_hidden("#error")
    assert page.locator("#compare-columns .special").count() == 3
    excuse(page, " 422 ")
