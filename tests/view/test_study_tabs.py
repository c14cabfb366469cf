"""The tabs Merges, Vocabulary and Languages, against the library."""

from __future__ import annotations

import json
from importlib import resources

import httpx

import streamtok
from streamtok.answers.views import vocabulary_view
from streamtok.answers.views.merges import trace_merges

from .conftest import Open, opened, ready, token_ids, until

ENC = streamtok.get_encoding("cl100k_base")
TEXT = "a Unbelievable 語\n"


def test_merges_begin_before_the_first(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "merges")
    assert page.locator("#merges-pretokens .chosen").inner_text() == "·Unbelievable"
    ids = ENC.encode(" Unbelievable")
    assert token_ids(page, "#merges-parts .t") == [
        ENC.encode_single_token(one) for one in map(chr, b" Unbelievable")
    ]
    assert "answer" not in page.inner_text("#merges-what")  # it is for the reader to guess
    trace = trace_merges(ENC, " Unbelievable")
    for number, step in enumerate((s for s in trace.steps if s.kind == "merged"), 1):
        first = page.locator("#merges-pairs li").first.inner_text()
        assert first.startswith(f"rank {step.candidate.rank}: ")
        page.click("#merges-step")
        assert page.inner_text("#merges-what").startswith(f"Merge {number}: ")
        if number < trace.merges:
            drawn = page.locator("#merges-parts .t").all_inner_texts()
            assert drawn == [part.shown for part in step.parts]
    assert token_ids(page, "#merges-parts .t") == ids
    said = page.inner_text("#merges-what")
    assert f"The answer: {len(ids)} tokens, ids {', '.join(map(str, ids))}." in said
    assert page.is_disabled("#merges-step")
    page.click("#merges-back")
    assert "answer" not in page.inner_text("#merges-what")
    # Another pre-token, by the keyboard.
    page.focus("#merges-pretokens .chosen")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#merges-pretokens .chosen').textContent === '·語'")
    ready(page, "merges")
    page.click("#merges-end")
    assert token_ids(page, "#merges-parts .t") == ENC.encode(" 語")


def test_pretokens_that_are_not_followed(client: httpx.Client) -> None:
    question = {"encoding": "gpt2", "chosen": 0}
    for text, message in (("x" * 500, "500 bytes; at most 400"), ("x " * 1000, "than the 1,000")):
        answer = client.post("api/merges", json={**question, "text": text})
        assert message in answer.json()["error"]


def test_odd_tokens_are_shown_at_once(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "vocabulary")
    titles = page.locator("#vocabulary-lists h2").all_inner_texts()
    assert titles == [
        f"Unreachable tokens: {len(vocabulary_view.unreachable(ENC))}",
        "The longest tokens: 16",
        f"Partial UTF-8: {len(vocabulary_view.half_characters(ENC))}",
    ]
    longest = vocabulary_view.longest(ENC, 1)[0]
    page.click("#vocabulary-lists > :nth-child(2) button >> nth=0")
    ready(page, "vocabulary")
    about = page.inner_text("#vocabulary-token")
    assert f"id {longest.id}, rank {longest.rank}, {len(longest.bytes)} bytes" in about
    # Down to a byte, which nothing makes.
    while page.locator("#vocabulary-token .list").count() == 2:
        page.click("#vocabulary-token .list >> nth=0 >> button >> nth=0")
        ready(page, "vocabulary")
    assert "No merge makes it." in page.inner_text("#vocabulary-token")


def test_a_search(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "vocabulary")
    page.fill("#vocabulary-query", "tokeniz")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#vocabulary-lists h2').textContent.includes('tokeniz')")
    found = [one.shown for one in vocabulary_view.find_text(ENC, "tokeniz")]
    assert page.locator("#vocabulary-lists code").all_inner_texts() == found
    page.click("#vocabulary-lists button >> nth=0")
    ready(page, "vocabulary")
    assert page.inner_text("#vocabulary-token h2") == found[0]
    parts = page.locator("#vocabulary-token .list >> nth=0 >> code").all_inner_texts()
    assert "".join(parts) == found[0]
    assert page.locator("#vocabulary-token .list >> nth=1 >> button").count() == 8
    page.fill("#vocabulary-query", "1917")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#vocabulary-lists h2').textContent.includes('1917')")
    assert page.locator("#vocabulary-lists code").first.inner_text() == "·world"
    page.fill("#vocabulary-query", "")
    until(page, "document.querySelectorAll('#vocabulary-lists h2').length === 3")


def test_no_such_id(client: httpx.Client) -> None:
    for id in (100_256 + 500, 1 << 40):
        response = client.post("api/token", json={"encoding": "cl100k_base", "id": id})
        assert response.status_code in (400, 422)


def test_languages_are_sorted_and_filtered(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "languages")
    file = resources.files("streamtok.view") / "static" / "languages.json"
    languages = json.loads(file.read_text("utf-8"))
    counts = {one["name"]: ENC.count(one["text"]) for one in languages}

    def column(number: int) -> list[str]:
        cells: list[str]
        cells = page.locator(f"#languages-table tbody tr > :nth-child({number})").all_inner_texts()
        return cells

    names = sorted(counts, key=lambda name: -counts[name])
    assert [name.strip() for name in column(1)] == names
    assert column(2) == [str(counts[name]) for name in names]
    assert column(3)[0] == f"{counts[names[0]] / counts['English']:.2f}"
    assert page.get_attribute("#languages-table th[aria-sort=descending]", "scope") == "col"
    page.click("#languages-table thead button >> nth=0")
    assert [name.strip() for name in column(1)] == sorted(counts)
    page.keyboard.press("Enter")  # the column keeps the focus
    assert [name.strip() for name in column(1)] == sorted(counts, reverse=True)
    page.fill("#languages-filter", "an")
    assert sorted(column(1)) == sorted(name for name in counts if "an" in name)
    assert page.inner_text("#languages-shown").endswith(f"of {len(counts)} languages")
    page.select_option("#beside", "")
    until(page, "document.querySelectorAll('#languages-table thead th').length === 4")
    page.click("#languages-table tbody button >> nth=0")  # its sentence, in the tab Text
    ready(page, "text")
    assert page.input_value("#text-box") in [one["text"] for one in languages]
