"""The file of the command line: what the page shows of it."""

from __future__ import annotations

import gzip
from pathlib import Path

import fsspec
import pytest

from streamtok.errors import StreamtokError
from streamtok.view.given import read_given

from .conftest import Open, Serve, excuse, ready


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for name in (str(tmp_path / "none"), (tmp_path / "none").as_uri()):
        with pytest.raises(OSError):
            read_given(name)
    path = tmp_path / "damaged.gz"
    path.write_bytes(gzip.compress(b"text" * 1000)[:-20])
    with pytest.raises(StreamtokError):
        read_given(str(path))


def test_whole_and_large_texts(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert read_given(path.as_uri())[1:] == ("one\ntwo\n", True, True)
    data = "aé".encode() * 400_000
    (tmp_path / "large.txt").write_bytes(data)
    with fsspec.open("memory://view/large.txt", "wb") as file:
        file.write(data)
    for name in (str(tmp_path / "large.txt"), "memory://view/large.txt"):
        _, text, is_whole, is_utf8 = read_given(name)
        assert (is_whole, is_utf8) == (False, True)
        assert len(text) > 40_000
        assert data.decode().startswith(text)


def test_the_page_says_where_only_the_start_is_shown(
    open_page: Open, serve: Serve, tmp_path: Path
) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes(b"a line\n" * 50_000)
    page = open_page(serve(given=read_given(str(path))))
    ready(page, "text")
    assert "large.txt: only the start is shown" in page.inner_text("#text-note")
    page.fill("#text-box", "x")
    assert page.inner_text("#text-note").startswith("Each box is a token")
    page.fill("#text-box", "x" * ((1 << 20) + 1))
    page.wait_for_selector("#error:not([hidden])")
    assert "streamtok count takes files of any size" in page.inner_text("#error")
    excuse(page, " 413 ")
