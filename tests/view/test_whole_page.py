"""What all tabs share: everybody can use them, on a telephone and by the keyboard, too."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Open, Serve, excuse, opened, picture, ready, until, violations

TEXT = "Naïve café, 日本語 🎉\n\n  <b>not bold</b>\tend" + "x" * 200
TABS = ["text", "chat", "stream", "compare", "merges", "vocabulary", "languages"]
LARGE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


@pytest.mark.parametrize("tab", TABS)
def test_anybody_can_use_it(open_page: Open, url: str, tab: str) -> None:
    page = opened(open_page, url, tab)
    if tab == "stream":
        page.click("#stream-step")
    elif tab == "vocabulary":
        page.click("#vocabulary-lists button >> nth=0")
        ready(page, tab)
    elif tab == "text":
        page.check("#text-ids")
    for size in (LARGE, PHONE):
        page.set_viewport_size(size)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    # Letters are smaller on a telephone, and colours are the same.
    page.emulate_media(color_scheme="dark")
    assert violations(page, ["color-contrast"]) == []
    if tab == "text":  # the counts are in view
        box = page.locator("#text-counts").bounding_box()
        assert box["y"] + box["height"] < page.locator("#text-box").bounding_box()["y"]
        assert box["y"] + box["height"] < 0.3 * PHONE["height"]


def test_the_address_has_the_tab(open_page: Open, url: str) -> None:
    page = opened(open_page, url, "stream")
    assert page.url.endswith("#stream")
    page.focus("#tab-compare")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel-compare[data-state=ready]")
    assert page.locator("main > section:visible").count() == 1
    assert page.locator("nav [aria-current]").all_inner_texts() == ["Compare"]
    page.reload()
    page.wait_for_selector("#panel-compare[data-state=ready]")
    page.go_back()
    page.wait_for_selector("#panel-stream", state="visible")
    assert page.is_hidden("#panel-compare")


def test_it_opens_on_a_sample(open_page: Open, serve: Serve) -> None:
    page = open_page(serve())
    ready(page, "text")
    samples = page.locator("#text-samples button")
    assert samples.count() == 3
    seen = set()
    for i in range(3):
        if i:
            samples.nth(i).click()
            ready(page, "text")
        assert samples.nth(i).get_attribute("aria-pressed") == "true"
        assert page.locator("#text-tokens .t").count() > 20
        if not i:
            page.check("#text-ids")
            picture(page, "text")
            page.uncheck("#text-ids")
        seen.add((page.input_value("#text-box"), page.inner_text("#text-note")))
    assert len(seen) == 3
    page.fill("#text-box", "x")
    assert page.locator("#text-samples [aria-pressed=true]").count() == 0


def test_panes_grow_with_the_window(open_page: Open, url: str) -> None:
    page = open_page(url)
    heights: list[tuple[float, float]] = []
    for size in (LARGE, {"width": 1600, "height": 1200}):
        page.set_viewport_size(size)
        boxes = [page.locator(one).bounding_box() for one in ("#text-box", "#text-tokens")]
        assert all(box["width"] > 0.45 * size["width"] for box in boxes)
        heights.append((boxes[0]["height"], boxes[1]["height"]))
        assert page.evaluate("document.documentElement.scrollHeight") <= size["height"]
    assert heights[1][0] == heights[0][0] + 400
    assert heights[1][1] == heights[0][1] + 400


def test_tabs_that_do_not_fit(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.set_viewport_size(PHONE)

    def wait_for_arrows(sides: str) -> None:
        until(page, f"document.querySelector('nav').dataset.more.trim() === '{sides}'")

    wait_for_arrows("right")
    page.focus("#tab-languages")
    page.keyboard.press("Enter")
    ready(page, "languages")
    wait_for_arrows("left")
    page.set_viewport_size(LARGE)
    wait_for_arrows("")


@pytest.mark.parametrize("size", [LARGE, PHONE])
def test_errors_do_not_move_the_page(open_page: Open, serve: Serve, size: Any) -> None:
    page = open_page(serve(text="a <|endoftext|>\n" * 30))
    page.set_viewport_size(size)
    for tab, elements in (
        ("text", "#text-tokens, #text-box, footer"),
        ("compare", "#compare-columns, footer"),
    ):
        page.click(f"#tab-{tab}")
        page.select_option("#special", "plain")
        ready(page, tab)
        page.wait_for_timeout(100)

        def places(wanted: str = elements) -> Any:
            script = "all => all.map((one) => JSON.stringify(one.getBoundingClientRect()))"
            return page.eval_on_selector_all(wanted, script)

        before = places()
        page.select_option("#special", "refuse")
        page.wait_for_selector("#error:not([hidden])")
        page.wait_for_selector(f"#panel-{tab}[data-state=failed]")
        assert places() == before
    excuse(page, " 422 ")
