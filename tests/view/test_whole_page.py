"""What all tabs share: everybody can use them, on a telephone and by the keyboard, too."""

from __future__ import annotations

import pytest

from .conftest import Open, opened, violations

TEXT = "Naïve café, 日本語 🎉\n\n  <b>not bold</b>\tend" + "x" * 200


@pytest.mark.parametrize("tab", ["text", "stream", "compare"])
def test_anybody_can_use_it(open_page: Open, url: str, tab: str) -> None:
    page = opened(open_page, url, tab)
    if tab == "stream":
        page.click(f"#{tab}-step")
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, ["color-contrast"]) == []
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    if tab == "text":  # the counts are in view
        box = page.locator("#text-counts").bounding_box()
        assert box["y"] + box["height"] < page.locator("#text-box").bounding_box()["y"]
        assert box["y"] < 0.3 * 640


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
