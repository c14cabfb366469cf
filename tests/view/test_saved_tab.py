"""What a tab shows, saved as one HTML file and as an image."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

import streamtok

from .conftest import Open, opened

TEXT = "Naïve <b>&amp;</b> 🎉\n" * 40 + "</style><script>alert(1)</script>"
IDS = streamtok.get_encoding("cl100k_base").encode(TEXT)


@pytest.mark.parametrize("tab", ["text", "chat", "languages"])
def test_saved(browser: Any, open_page: Open, url: str, tmp_path: Path, tab: str) -> None:
    page = opened(open_page, url, tab, accept_downloads=True)
    paths = {}
    for kind, ending in (("html", "html"), ("image", "png")):
        with page.expect_download() as found:
            page.click(f"#save-{kind}")
        assert found.value.suggested_filename == f"streamtok-{tab}.{ending}"
        paths[kind] = tmp_path / found.value.suggested_filename
        found.value.save_as(paths[kind])
    assert page.is_hidden("#error")
    assert page.locator(".saved").count() == 0  # the page is as it was

    data = paths["image"].read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width == 2 * page.locator(f"#panel-{tab}").bounding_box()["width"]
    assert height > 300
    assert len(data) > 20_000  # something is drawn

    saved = browser.new_page()
    saved.goto(paths["html"].as_uri())
    assert saved.locator("button, select, textarea, input, script, link").count() == 0
    assert "cl100k_base" in saved.inner_text(".saved")
    if tab == "text":
        assert saved.locator(".typed").inner_text() == TEXT
        drawn = saved.eval_on_selector_all(".tokens .t", "all => all.map((one) => one.dataset.id)")
        assert set(drawn) <= {str(id) for id in IDS}
        tokens = saved.locator(".tokens")
        assert tokens.evaluate("one => one.scrollHeight <= one.clientHeight + 1")  # all is in view
    saved.close()
