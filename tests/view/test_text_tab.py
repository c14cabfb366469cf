"""The tab Text in a browser: type, paste, drop, look at tokens; megabytes; keyboard, telephone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import streamtok
from streamtok.formats import save_packed
from streamtok.view.chat import chat_template
from streamtok.view.edited_texts import MAX_TEXTS

from .conftest import Open, Serve, excuse, picture, until, violations
from .page_server import client_of, served

ENC = streamtok.get_encoding("cl100k_base")
TEXT = "Naïve café, 日本語 🎉\n\n  <b>not bold</b> &amp; <script>alert(1)</script>\tend"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(text="Hello world") as found:
        yield found


def ready(page: Any) -> None:
    page.wait_for_selector("#panel-text[data-state=ready]")


def still(page: Any) -> None:
    """Wait until the list has stopped: what is drawn first may have other heights than expected."""
    seen = None
    while True:
        ready(page)
        place = page.evaluate(
            "[document.querySelector('#text-tokens').scrollTop,"
            " document.querySelector('#text-tokens .row').start]"
        )
        if place == seen:
            return
        seen = place
        page.wait_for_timeout(100)


def shown(page: Any) -> list[int]:
    """The ids that are drawn, in order."""
    ids: list[int] = page.eval_on_selector_all(
        "#text-tokens .t", "boxes => boxes.map((box) => box.token.id)"
    )
    return ids


def counts(page: Any) -> dict[str, str]:
    names = page.locator("#text-counts dt").all_inner_texts()
    return dict(zip(names, page.locator("#text-counts dd").all_inner_texts(), strict=True))


def paste(page: Any, text: str) -> None:
    page.focus("#text-box")
    page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.setData("text/plain", text);
          const how = { clipboardData: data, bubbles: true, cancelable: true };
          document.activeElement.dispatchEvent(new ClipboardEvent("paste", how));
        }""",
        text,
    )
    ready(page)


def drop(page: Any, name: str, text: str, on: str = "#text-tokens") -> None:
    page.evaluate(
        """([name, text, on]) => {
          const data = new DataTransfer();
          data.items.add(new File([text], name));
          const how = { dataTransfer: data, bubbles: true, cancelable: true };
          document.querySelector(on).dispatchEvent(new DragEvent("drop", how));
        }""",
        [name, text, on],
    )


def test_the_first_text(open_page: Open, url: str) -> None:
    page = open_page(url)
    ready(page)
    assert "token=" not in page.url  # it does not stay in the history
    assert page.input_value("#text-box") == "Hello world"
    assert shown(page) == ENC.encode("Hello world")


def test_typed_text(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.fill("#text-box", TEXT)
    ready(page)
    ids = ENC.encode(TEXT)
    assert shown(page) == ids
    assert counts(page) == {
        "tokens": str(len(ids)),
        "characters (code points)": str(len(TEXT)),
        "bytes": str(len(TEXT.encode())),
        "tokens per character": f"{len(ids) / len(TEXT):.3f}",
        "characters per token": f"{len(TEXT) / len(ids):.3f}",
    }
    assert page.locator("#text-tokens b, #text-tokens script").count() == 0  # text, not HTML
    drawn = page.inner_text("#text-tokens")
    for sign in ("<b>", "&", "·", "⏎", "⇥"):
        assert sign in drawn
    page.press("#text-box", "Control+Home")
    page.keyboard.type("Oh! ")
    ready(page)
    assert shown(page) == ENC.encode("Oh! " + TEXT)
    for _ in range(6):
        page.keyboard.press("Backspace")
        page.keyboard.press("Delete")
    ready(page)
    assert shown(page) == ENC.encode(page.input_value("#text-box"))
    picture(page, "text")


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
        ready(page)
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        assert shown(page) == ENC.encode(whole), ascii(text)
        assert counts(page)["characters (code points)"] == str(len(whole))


def test_random_keys(open_page: Open, url: str) -> None:
    """Typing, selecting, cutting, pasting and undoing, in a text whose box holds a part of it."""
    rng = random.Random(7)
    page = open_page(url)
    paste(page, "".join(f"{i} wörd 🎉 {i * 7}\n" for i in range(2500)))
    assert page.is_visible("#text-part")
    keys = [
        "a", " ", "Enter", "Backspace", "Delete", "ArrowUp", "ArrowDown", "ArrowLeft", "Home",
        "End", "Shift+ArrowUp", "Shift+ArrowRight", "Control+x", "Control+v", "Control+z", "PageUp",
        "PageDown", "Control+Home", "Control+End", "é",
    ]  # fmt: skip
    for _ in range(6):
        for key in rng.choices(keys, k=25):
            if len(key) == 1:
                page.keyboard.insert_text(key)
            else:
                page.keyboard.press(key)
        ready(page)
        # The model's text is what Compare would send; the box shows its part of it.
        part = page.inner_text("#text-where").replace(",", "").split()
        start, stop, size = (int(part[i]) for i in (4, 6, 8))
        assert stop - start == len(page.input_value("#text-box"))
        with page.expect_request("**/api/compare") as asked:
            page.click("#tab-compare")
        text = asked.value.post_data_json["text"]
        page.wait_for_selector("#panel-compare[data-state=ready]")
        page.click("#tab-text")
        assert len(text) == size
        assert text[start:stop] == page.input_value("#text-box")
        ids = ENC.encode(text, disallowed_special=())
        assert counts(page)["tokens"] == f"{len(ids):,}"
        assert counts(page)["characters (code points)"] == f"{len(text):,}"
        first = page.evaluate("document.querySelector('#text-tokens .row').first")
        drawn = shown(page)
        assert drawn == ids[first : first + len(drawn)]
        page.focus("#text-box")


def test_a_token_is_told_about(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.fill("#text-box", "Hello wörld")
    ready(page)
    ids = ENC.encode("Hello wörld")
    page.hover("#text-tokens .t >> nth=1")
    detail = page.inner_text("#text-detail")
    assert f"token 1: id {ids[1]}, rank {ids[1]}" in detail
    assert ENC.decode_single_token_bytes(ids[1]).hex(" ") in detail
    # By the keyboard: one stop for Tab, arrows from there.
    page.focus("#text-file")
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
    ready(page)
    assert shown(page) == ENC.encode(text, disallowed_special=())
    page.select_option("#special", "allow")
    ready(page)
    assert shown(page) == ENC.encode(text, allowed_special="all")
    page.hover("#text-tokens .special")
    assert "special token" in page.inner_text("#text-detail")
    page.select_option("#special", "refuse")
    page.wait_for_selector("#error:not([hidden])")
    ready(page)
    assert "<|endoftext|>" in page.inner_text("#error")
    assert shown(page) == []
    page.focus("#text-box")
    page.keyboard.press("Control+End")
    page.keyboard.press("Backspace")  # it is no special token any more
    ready(page)
    assert shown(page) == ENC.encode(text[:-1])
    assert page.is_hidden("#error")


def test_another_encoding(open_page: Open, url: str) -> None:
    page = open_page(url)
    for name in ("gpt2", "o200k_base", "o200k_harmony"):
        page.select_option("#encoding", name)
        ready(page)
        assert shown(page) == streamtok.get_encoding(name).encode("Hello world")


def test_a_vocabulary_that_was_given(open_page: Open, serve: Serve) -> None:
    tokens = {bytes([byte]): byte for byte in range(256)} | {b"<b>": 256, b"lo": 257}
    mine = streamtok.Encoding("mine", pat_str=r"[\s\S]+", mergeable_ranks=tokens, special_tokens={})
    url = serve(encoding=mine, text="<b>lo</b>")
    page = open_page(url)
    ready(page)
    assert page.input_value("#encoding") == "mine"
    assert shown(page) == mine.encode("<b>lo</b>")
    assert page.locator("#text-tokens b").count() == 0


def test_all_of_a_long_text_is_selected(open_page: Open, url: str) -> None:
    """Ctrl-A selects the text beyond the part in the box, too, and undo brings all of it back."""
    text = "".join(f"{i} 🎉 line\n" for i in range(4000))
    size = counted(text)
    page = open_page(url)
    page.fill("#text-box", "")
    for key in ("Delete", "x", "Control+x"):
        paste(page, text)
        assert counts(page)["tokens"] == size
        page.keyboard.press("Control+a")
        until(page, "document.querySelector('#text-where').textContent.startsWith('All ')")
        assert f"All {len(text):,} characters" in page.inner_text("#text-where")
        page.keyboard.press(key)
        ready(page)
        left = "x" * (key == "x")
        assert page.input_value("#text-box") == left
        assert shown(page) == ENC.encode(left)
        assert page.is_hidden("#text-part")
        if key == "Delete":
            page.keyboard.press("Control+z")
            ready(page)
            assert counts(page)["tokens"] == size
        page.click("#text-clear")


def counted(text: str) -> str:
    return f"{len(ENC.encode(text)):,}"


def test_characters_of_several_tokens(open_page: Open, url: str) -> None:
    page = open_page(url)
    text = "ok 語 🎉 👨\u200d👩\u200d👧 e\u0323\u0302 日本"
    page.fill("#text-box", text)
    ready(page)
    assert shown(page) == ENC.encode(text)
    signs = page.locator("#text-tokens .whole .sign").all_inner_texts()
    assert [one.strip("·") for one in signs] == ["語", "🎉", "👨\u200d👩\u200d👧", "e\u0323\u0302"]
    pieces = page.locator("#text-tokens .whole .t").evaluate_all(
        "all => all.map((one) => one.token.bytes)"
    )
    assert bytes.fromhex("".join(pieces)).decode() == "".join(signs).replace("·", " ")
    page.click("#tab-compare")
    page.wait_for_selector("#panel-compare[data-state=ready]")
    column = page.locator("#compare-columns > :first-child .sign").all_inner_texts()
    assert column == signs


def test_ids_are_copied(open_page: Open, url: str) -> None:
    page = open_page(url, permissions=["clipboard-read", "clipboard-write"])
    page.fill("#text-box", TEXT)
    ready(page)
    ids = ENC.encode(TEXT)
    assert page.inner_text("#text-ids") == ", ".join(map(str, ids))
    long = "one two 3 " * 3000
    page.fill("#text-box", long)
    ready(page)
    assert page.inner_text("#text-ids").endswith(", …")
    page.click("#text-copy")
    until(page, "document.querySelector('#text-copy').textContent.endsWith('copied')")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == ENC.encode(long)


def test_the_turns_of_mistral() -> None:
    old = {"<s>", "</s>", "[INST]", "[/INST]"}
    found = chat_template(old)
    assert found == {
        "name": "Mistral",
        "turns": {"user": ["[INST]", "[/INST]"], "assistant": ["", "</s>"]},
    }
    new = chat_template(old | {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"})
    assert new is not None
    assert list(new["turns"]) == ["system", "user", "assistant"]
    assert chat_template(old - {"[/INST]"}) is None


def test_turns_of_a_chat(open_page: Open, url: str) -> None:
    page = open_page(url)
    ready(page)
    assert page.is_hidden("#chat-add")
    assert "cl100k_base has no special tokens" in page.inner_text("#chat-name")
    page.select_option("#encoding", "o200k_harmony")
    page.wait_for_selector("#chat-add:not([hidden])")
    page.fill("#text-box", "")
    for role, words in (("user", "Hi"), ("assistant", "Hello!")):
        page.select_option("#chat-role", role)
        page.click("#chat-add")
        page.keyboard.type(words)
    ready(page)
    text = "<|start|>user<|message|>Hi<|end|><|start|>assistant<|message|>Hello!<|end|>"
    assert page.input_value("#text-box") == text
    assert page.input_value("#special") == "allow"
    harmony = streamtok.get_encoding("o200k_harmony")
    assert shown(page) == harmony.encode(text, allowed_special="all")
    assert page.locator("#text-tokens .special").count() == 6


def test_a_vocabulary_is_loaded(open_page: Open, url: str, tmp_path: Path) -> None:
    tokens = {bytes([byte]): byte for byte in range(256)} | {b"He": 256, b"ll": 257, b"llo": 258}
    mine = streamtok.Encoding("m", pat_str=r"[\s\S]+", mergeable_ranks=tokens, special_tokens={})
    path = tmp_path / "my-own.streamtok"
    save_packed(mine, path)
    page = open_page(url)
    page.set_input_files("#vocabulary-file", path)
    until(page, "document.querySelector('#encoding').value === 'my-own (loaded)'")
    ready(page)
    assert shown(page) == mine.encode("Hello world")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    ready(page)
    assert shown(page) == mine.encode("Hello world")
    page.click("#tab-compare")
    page.wait_for_selector("#panel-compare[data-state=ready]")
    assert page.inner_text("#compare-columns h2 >> nth=0") == "my-own (loaded)"
    drop(page, "tokenizer.json", '{"a": 1}', on="header")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#error").startswith("tokenizer.json: unknown JSON format")
    excuse(page, " 422 ")


def test_a_text_survives_a_reload(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.fill("#text-box", "kept 🎉")
    page.select_option("#encoding", "gpt2")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    ready(page)
    assert page.input_value("#text-box") == "kept 🎉"
    assert shown(page) == streamtok.get_encoding("gpt2").encode("kept 🎉")


def test_what_was_said_of_a_token_goes_with_it(open_page: Open, url: str) -> None:
    page = open_page(url)
    ready(page)
    page.hover("#text-tokens .t >> nth=1")
    assert "id 1917" in page.inner_text("#text-detail")
    page.click("#text-clear")
    ready(page)
    assert "arrow keys" in page.inner_text("#text-detail")
    assert page.inner_text("#text-ids") == ""


def test_a_press_outlives_what_is_drawn_anew(open_page: Open, url: str) -> None:
    """The boxes of tokens are replaced between press and release: the token there is chosen."""
    page = open_page(url)
    page.fill("#text-box", "one two three four")
    ready(page)
    place = page.locator("#text-tokens .t").nth(2).bounding_box()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.down()
    before = page.locator("#text-tokens .row").evaluate_handle("(row) => row")
    page.evaluate("document.querySelector('#text-tokens .row').key = ''")
    page.select_option("#encoding", "gpt2")
    ready(page)
    assert not before.evaluate("(row) => row.isConnected")
    page.mouse.up()
    assert page.evaluate("document.activeElement.id") == "text-box"
    assert page.evaluate("document.activeElement.selectionStart") == len("one two")


@pytest.mark.parametrize("kind", ["lines", "one line", "pairs"])
def test_a_megabyte(open_page: Open, url: str, kind: str) -> None:
    """All of it is encoded, what is visible is drawn, and a key changes what it must."""
    lines = [f"{i} the quick brown fox {'🎉' * (kind == 'pairs')}{i * i}" for i in range(30_000)]
    text = (" " if kind == "one line" else "\n").join(lines)
    page = open_page(url)
    page.fill("#text-box", "")
    paste(page, text)
    assert counts(page)["tokens"] == f"{len(ENC.encode(text)):,}"
    assert len(shown(page)) < 3000
    assert page.is_visible("#text-part")
    # Into the middle: scroll, choose a token, type there.
    page.eval_on_selector("#text-tokens", "(list) => { list.scrollTop = list.scrollHeight / 2; }")
    until(page, "document.querySelector('#text-tokens .row').start > 300_000")
    still(page)
    page.locator("#text-tokens .row:nth-child(3) .t").first.scroll_into_view_if_needed()
    still(page)
    page.click("#text-tokens .row:nth-child(3) .t")
    part = page.inner_text("#text-where").removeprefix("In the box: characters ").split()[0]
    place = int(part.replace(",", "")) + page.evaluate(
        "[...document.activeElement.value.slice(0, document.activeElement.selectionStart)].length"
    )
    assert 200_000 < place < len(text) - 200_000
    page.keyboard.type("xyz ")
    ready(page)
    text = text[:place] + "xyz " + text[place:]
    ids = ENC.encode(text)
    assert counts(page)["tokens"] == f"{len(ids):,}"
    first = page.evaluate("document.querySelector('#text-tokens .row').first")
    drawn = shown(page)
    assert len(drawn) > 50
    assert drawn == ids[first : first + len(drawn)]
    page.click("#text-later")
    assert page.locator("#text-where").inner_text().startswith("In the box: characters ")
    page.click("#text-clear")
    ready(page)
    assert counts(page)["tokens"] == "0"
    assert page.is_hidden("#text-part")


def test_a_file_is_dropped(open_page: Open, url: str) -> None:
    page = open_page(url)
    drop(page, "a.txt", "\ufeffFrom a file:\r\nönce\n")
    until(page, "document.querySelector('#text-box').value.includes('From')")
    ready(page)
    assert shown(page) == ENC.encode("\ufeffFrom a file:\nönce\n")
    assert page.inner_text("#text-note").startswith("a.txt: CR LF became LF.")
    drop(page, "b.txt", "As it is")
    until(page, "document.querySelector('#text-box').value.startsWith('As')")
    assert page.is_hidden("#text-note")


def test_the_server_forgot_the_text(open_page: Open, url: str) -> None:
    """As after a restart of the server, or with many pages: the page sends its text again."""
    page = open_page(url)
    page.fill("#text-box", "one two")
    ready(page)
    with client_of(url) as other:
        question = {"encoding": "gpt2", "special": "plain", "text": "", "view": [0, 0]}
        for _ in range(MAX_TEXTS):
            assert other.post("api/text/open", json=question).status_code == 200
    page.press("#text-box", "Control+End")
    page.keyboard.type(" three")
    ready(page)
    assert shown(page) == ENC.encode("one two three")
    excuse(page, " 409 ")


def test_the_server_is_gone(open_page: Open) -> None:
    with served(text="Hello") as url:
        page = open_page(url)
        ready(page)
    page.fill("#text-box", "x")
    page.wait_for_selector("#error:not([hidden])")
    assert "does not answer" in page.inner_text("#error")
    page.context.close()
    excuse(page, "ERR_CONNECTION_REFUSED")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_anybody_can_use_it(open_page: Open, url: str, scheme: str) -> None:
    page = open_page(url, color_scheme=scheme)
    page.fill("#text-box", TEXT)
    ready(page)
    assert violations(page) == []
    page.fill("#text-box", "")
    ready(page)
    assert violations(page) == []


def test_on_a_telephone(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.set_viewport_size({"width": 360, "height": 640})
    page.fill("#text-box", TEXT + "x" * 200)
    ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    top = page.locator("#text-counts").bounding_box()
    assert top["y"] + top["height"] < page.locator("#text-box").bounding_box()["y"]
    assert top["y"] < 0.3 * 640
