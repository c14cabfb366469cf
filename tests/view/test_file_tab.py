"""The tab File in a browser: a file on the command line, an upload, what is wrong in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import streamtok
from streamtok.view.given import Given, Reading

from .conftest import Open, Serve, counts, picture, until, violations
from .page_server import served

ENC = streamtok.get_encoding("cl100k_base")


@pytest.fixture(scope="module")
def data() -> bytes:
    lines = [f"{i}: the quick brown fox{' jumps' * (i * i % 50)}".encode() for i in range(2000)]
    lines[100] = b"a special token: <|endoftext|>"
    lines[200] = b"not UTF-8: \xff\xfe"
    lines[300] = b"<b>bold</b> " * 100
    return b"\n".join(lines)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> Iterator[str]:
    path = tmp_path_factory.mktemp("given") / "log.txt"
    path.write_bytes(data)
    with served(given=Given(str(path))) as found:
        yield found


def check(page: Any, data: bytes) -> None:
    how: dict[str, Any] = {"disallowed_special": (), "errors": "replace"}
    each = [len(ENC.encode(line, **how)) for line in data.split(b"\n")]
    assert counts(page, "file") == {
        "tokens, whole file": f"{len(ENC.encode(data, **how)):,}",
        "bytes": f"{len(data):,}",
        "lines": "2,000",
        "tokens per line": f"{sum(each) / 2000:.2f}",
        "invalid UTF-8 bytes": "2",
        "lines with special tokens": "1",
        "share of lines with special tokens": "0.05 %",
    }
    first = page.locator("#file-most tbody tr").first.locator("td").all_inner_texts()
    start = data.index(b"<b>")
    assert first[:3] == [f"{each[300]:,}", "301", f"{start:,}"]
    assert first[3].startswith("<b>bold</b>")
    assert page.locator("#file-most b").count() == 0
    bad = page.locator("#file-bad tbody tr").all_inner_texts()
    assert bad == [
        f"{data.index(bytes([0xFF])):,}\tinvalid UTF-8: ff fe",
        f"{data.index(b'<|endof'):,}\t<|endoftext|>",
    ]
    assert page.locator("#file-chart .length").count() == max(each).bit_length() + 1


def test_the_file_of_the_command_line(open_page: Open, url: str, data: bytes) -> None:
    page = open_page(url)
    assert page.input_value("#text-box")  # its text is in the tab Text
    assert "log.txt: invalid UTF-8 became U+FFFD" in page.inner_text("#text-note")
    page.click("#tab-file")
    page.wait_for_selector("#panel-file[data-state=ready]")
    check(page, data)
    assert "log.txt: finished" in page.inner_text("#file-state")
    picture(page, "file")
    assert violations(page) == []
    page.select_option("#encoding", "gpt2")
    until(page, "document.querySelector('#file-state').textContent.includes('with gpt2')")
    tokens = streamtok.get_encoding("gpt2").count(data, disallowed_special=(), errors="replace")
    assert counts(page, "file")["tokens, whole file"] == f"{tokens:,}"
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_an_upload(open_page: Open, serve: Serve, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "upload.txt"
    path.write_bytes(data)
    url = serve()
    page = open_page(url, color_scheme="dark")
    page.click("#tab-file")
    assert page.is_hidden("#file-given")
    page.set_input_files("#file-upload", str(path))
    page.wait_for_selector("#panel-file[data-state=ready]")
    check(page, data)
    assert violations(page) == []


def test_a_large_upload_in_blocks(open_page: Open, serve: Serve, tmp_path: Path) -> None:
    """Nine megabytes, more than the tab Text takes: dropped there, it is read here."""
    path = tmp_path / "large.txt"
    line = "a line of text, 日本語\n"
    text = line * (9_000_000 // len(line.encode()))
    path.write_text(text, "utf-8", newline="")
    url = serve()
    page = open_page(url)
    page.set_input_files("#text-file", str(path))
    page.wait_for_selector("#panel-file[data-state=ready]")
    assert counts(page, "file")["bytes"] == f"{path.stat().st_size:,}"
    assert counts(page, "file")["tokens, whole file"] == f"{ENC.count(text):,}"


class Endless(Given):
    """A file without an end."""

    def open(self) -> Reading:
        reading = super().open()
        reading._blocks = itertools.repeat(b"some text\n" * 1000)
        return reading


def test_stop(open_page: Open, serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "endless.txt"
    path.write_text("some text\n")
    url = serve(given=Endless(str(path)))
    page = open_page(url)
    until(page, "document.querySelectorAll('#file-counts dd').length > 0")
    page.click("#file-stop")
    page.wait_for_selector("#panel-file[data-state=stopped]")
    assert "Stopped" in page.inner_text("#file-state")
    page.click("#file-given")
    page.wait_for_selector("#panel-file[data-state=busy]")
    page.click("#file-stop")
    page.wait_for_selector("#panel-file[data-state=stopped]")
    with page.expect_response("**/api/about"):  # the server has answered all before
        page.evaluate("fetch('api/about')")
