"""The tab Text in a browser: type, look at tokens by mouse and keyboard; long texts."""

from __future__ import annotations

import json

import streamtok

from .conftest import Open, Serve, counts, excuse, ready, token_ids, until
from .page_server import served

ENC = streamtok.get_encoding("cl100k_base")
TEXT = "Hello world"  # what the page shows at first
TYPED = "Naïve café, 日本語 🎉\n\n  <b>not bold</b> &amp; <script>alert(1)</script>\tend"
BOXES = "#text-tokens .t"
FAMILY = "👨\u200d👩\u200d👧\u200d👦"


def test_typed_text(open_page: Open, url: str) -> None:
    page = open_page(url)
    ready(page, "text")
    assert "token=" not in page.url  # it does not stay in the history
    assert token_ids(page, BOXES) == ENC.encode(TEXT)
    page.fill("#text-box", TYPED)
    ready(page, "text")
    ids = ENC.encode(TYPED)
    assert token_ids(page, BOXES) == ids
    other = streamtok.get_encoding("o200k_base").count(TYPED)
    assert other < len(ids)
    assert counts(page, "text") == {
        "tokens": str(len(ids)),
        "in o200k_base": f"{other} (−{(len(ids) - other) / len(ids):.0%})".replace("%", " %"),
        "characters": str(len(TYPED)),
        "bytes": str(len(TYPED.encode())),
        "characters per token": f"{len(TYPED) / len(ids):.2f}",
    }
    assert page.locator("#text-tokens b, #text-tokens script").count() == 0  # text, not HTML
    drawn = page.inner_text("#text-tokens")
    for sign in ("<b>", "&", "·", "⏎", "⇥"):
        assert sign in drawn
    page.press("#text-box", "Control+Home")
    page.keyboard.type("Oh! ")
    ready(page, "text")
    assert token_ids(page, BOXES) == ENC.encode("Oh! " + TYPED)
    for _ in range(6):
        page.keyboard.press("Backspace")
        page.keyboard.press("Delete")
    ready(page, "text")
    assert token_ids(page, BOXES) == ENC.encode(page.input_value("#text-box"))


def test_every_edit_of_nasty_texts(open_page: Open, url: str) -> None:
    page = open_page(url)
    for text in ("🎉🎊a", "🎊🎉a", "🎉a", "a🎉", "", "\n", "\n\n", "a\n\nb", "e\u0301", "\ud83d"):
        page.evaluate(
            """units => {
              const box = document.querySelector("#text-box");
              box.value = String.fromCharCode(...units);
              box.dispatchEvent(new InputEvent("input", { bubbles: true }));
            }""",
            [*memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")],
        )
        ready(page, "text")
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        assert token_ids(page, BOXES) == ENC.encode(whole), ascii(text)
        assert counts(page, "text")["characters"] == str(len(whole))


def test_a_token_is_told_about(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.fill("#text-box", "Hello wörld")
    ready(page, "text")
    ids = ENC.encode("Hello wörld")
    page.hover("#text-tokens .t >> nth=1")
    detail = page.inner_text("#text-detail")
    assert f"token 1: id {ids[1]}, rank {ids[1]}" in detail
    assert ENC.decode_single_token_bytes(ids[1]).hex(" ") in detail
    # By the keyboard: one stop for Tab, arrows from there.
    page.focus("#text-copy")
    page.keyboard.press("Tab")
    assert f"token 0: id {ids[0]}" in page.inner_text("#text-detail")
    page.keyboard.press("End")
    assert f"token {len(ids) - 1}: id {ids[-1]}" in page.inner_text("#text-detail")
    page.keyboard.press("ArrowLeft")
    assert f"token {len(ids) - 2}: id {ids[-2]}" in page.inner_text("#text-detail")
    page.keyboard.press("Enter")  # the cursor goes to the token's text
    before = len(ENC.decode(ids[:-2]))
    assert page.evaluate("document.activeElement.id") == "text-box"
    assert page.evaluate("document.activeElement.selectionStart") == before


def test_special_tokens(open_page: Open, url: str) -> None:
    page = open_page(url)
    text = "end <|endoftext|>"
    page.fill("#text-box", text)
    ready(page, "text")
    assert token_ids(page, BOXES) == ENC.encode(text, disallowed_special=())
    page.select_option("#special", "allow")
    ready(page, "text")
    assert token_ids(page, BOXES) == ENC.encode(text, allowed_special="all")
    page.hover("#text-tokens .special")
    assert "special token" in page.inner_text("#text-detail")
    page.select_option("#special", "refuse")
    page.wait_for_selector("#panel-text[data-state=failed]")
    assert "<|endoftext|>" in page.inner_text("#error")
    assert page.locator(f"{BOXES}:visible").count() == 0
    excuse(page, " 422 ")
    page.focus("#text-box")
    page.keyboard.press("Control+End")
    page.keyboard.press("Backspace")  # it is no special token any more
    ready(page, "text")
    assert token_ids(page, BOXES) == ENC.encode(text[:-1])
    assert page.is_hidden("#error")


def test_characters_of_several_tokens(open_page: Open, url: str) -> None:
    page = open_page(url)
    text = f"ok 語 🎉 {FAMILY} e\u0301 日本"
    page.fill("#text-box", text)
    ready(page, "text")
    assert token_ids(page, BOXES) == ENC.encode(text)
    signs = page.locator("#text-tokens .sign").all_inner_texts()
    wholes = [" 語", " 🎉", f" {FAMILY}", " e\u0301"]
    assert signs == [f"·{one[1:]} · {ENC.count(one)} tokens" for one in wholes]
    assert page.locator("#text-tokens .pieces .t:visible").count() == 0
    # By the keyboard: one stop for each of them, which Enter opens.
    page.focus("#text-copy")
    page.keyboard.press("Tab")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert "tokens 4 to 6 are “·🎉”" in page.inner_text("#text-detail")
    page.keyboard.press("Enter")
    opened = page.locator("#text-tokens .pieces .t:visible")
    assert opened.count() == 3
    page.keyboard.press("ArrowRight")
    assert "token 4: id" in page.inner_text("#text-detail")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert opened.count() == 0
    page.click("#tab-compare")
    page.wait_for_selector("#panel-compare[data-state=ready]")
    column = page.locator("#compare-columns > :first-child .sign").all_inner_texts()
    assert column == signs


def test_ids_are_copied(open_page: Open, url: str) -> None:
    page = open_page(url, permissions=["clipboard-read", "clipboard-write"])
    page.fill("#text-box", TYPED)
    ready(page, "text")
    page.check("#text-ids")
    first = page.locator(BOXES).first
    under = first.evaluate("box => getComputedStyle(box, '::after').content")
    assert under == f'"{ENC.encode(TYPED)[0]}"'
    page.uncheck("#text-ids")
    assert first.evaluate("box => getComputedStyle(box, '::after').content") == "none"
    long = "one two 3 " * 3000
    page.fill("#text-box", long)
    page.click("#text-copy")
    until(page, "document.querySelector('#text-copy').textContent.endsWith('copied')")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == ENC.encode(long)


def test_a_long_text(open_page: Open, serve: Serve) -> None:
    """All of it is encoded; the tokens around the cursor are drawn, and follow it."""
    text = "\n".join(f"{i} the quick brown fox 🎉{i * i}" for i in range(2500))
    page = open_page(serve(text=text))
    ready(page, "text")
    for keys, start in (("Control+End", None), ("Control+Home", 0), ("", 40_000)):
        if keys:
            page.press("#text-box", keys)
        if start is None:
            place = len(text)
        else:
            place = start
            page.evaluate(
                "at => { const box = document.querySelector('#text-box');"
                " box.setSelectionRange(at, at); box.click(); }",
                len(text[:start].encode("utf-16-le")) // 2,
            )
        page.keyboard.type("xyz ")
        ready(page, "text")
        text = text[:place] + "xyz " + text[place:]
        ids = ENC.encode(text)
        assert counts(page, "text")["tokens"] == f"{len(ids):,}"
        first = page.evaluate("document.querySelector('#text-tokens .t').at")
        drawn = token_ids(page, BOXES)
        assert len(drawn) == 3000
        assert drawn == ids[first : first + 3000]
        at = len(ENC.encode(text[:place]))
        assert first <= at <= first + 3000
        said = f"Tokens {first:,} to {first + 2999:,} are shown"
        assert page.inner_text("#text-where").startswith(said)
    page.hover("#text-tokens .t >> nth=1")
    page.fill("#text-box", "")
    ready(page, "text")
    assert counts(page, "text")["tokens"] == "0"
    assert page.is_hidden("#text-where")
    assert "arrow keys" in page.inner_text("#text-detail")  # no word of a token that is gone


def test_the_server_is_gone(open_page: Open) -> None:
    with served(text="Hello") as url:
        page = open_page(url)
        ready(page, "text")
    page.fill("#text-box", "x")
    page.wait_for_selector("#error:not([hidden])")
    assert "does not answer" in page.inner_text("#error")
    page.goto("about:blank")  # it asks for nothing any more
    excuse(page, "ERR_CONNECTION_REFUSED")
