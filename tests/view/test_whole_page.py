"""What all tabs share: everybody can use them, on a telephone and by the keyboard, too."""

from __future__ import annotations

import pytest

from .conftest import Open, opened, ready, violations

TEXT = "Naïve café, 日本語 🎉\n\n  <b>not bold</b>\tend" + "x" * 200


@pytest.mark.parametrize("tab", ["text", "stream", "compare", "merges", "languages", "vocabulary"])
def test_anybody_can_use_it(open_page: Open, url: str, tab: str) -> None:
    page = opened(open_page, url, tab)
    if tab in ("stream", "merges"):
        page.click(f"#{tab}-step")
    elif tab == "vocabulary":
        page.fill("#vocabulary-query", "token")
        page.press("#vocabulary-query", "Enter")
        ready(page, tab)
        page.wait_for_selector("#vocabulary-token .tree")
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, ["color-contrast"]) == []
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    if tab == "text":  # the counts are in view
        box = page.locator("#text-counts").bounding_box()
        assert box["y"] + box["height"] < page.locator("#text-box").bounding_box()["y"]
        assert box["y"] < 0.3 * 640


def test_tabs_by_the_keyboard(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.focus("#tab-text")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-stream"
    assert page.is_visible("#panel-stream")
    assert page.is_hidden("#panel-text")
    page.keyboard.press("End")
    assert page.is_visible("#panel-vocabulary")
    page.keyboard.press("ArrowRight")
    assert page.is_visible("#panel-text")
    chosen = page.locator("[role=tab][aria-selected=true]")
    assert chosen.count() == 1
    assert page.locator("[role=tab][tabindex='0']").count() == 1
