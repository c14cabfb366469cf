"""The file of the command line: what the page shows of it."""

from __future__ import annotations

import gzip
import http.server
import threading
from pathlib import Path

import fsspec
import pytest

from streamtok.errors import StreamtokError
from streamtok.view.given import read_given

from .conftest import Open, Serve, ready
from .page_server import client_of, served


def test_the_page_says_nothing_of_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "given.txt"
    path.write_bytes(b"one\ntwo\n")
    with served(given=read_given(str(path))) as url, client_of(url) as client:
        about = client.get("api/about")
        assert about.json()["given"] == {"name": "given.txt", "is_whole": True, "is_utf8": True}
        assert about.json()["text"] == "one\ntwo\n"
        assert str(tmp_path) not in about.text


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for name in (str(tmp_path / "none"), (tmp_path / "none").as_uri()):
        with pytest.raises(OSError):
            read_given(name)
    path = tmp_path / "damaged.gz"
    path.write_bytes(gzip.compress(b"text" * 1000)[:-20])
    with pytest.raises(StreamtokError):
        read_given(str(path))


def test_an_object_in_a_store(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert read_given(path.as_uri())[1:] == ("one\ntwo\n", True, True)
    with fsspec.open("memory://view/text.txt", "wb") as file:
        file.write(b"a" * 700_000)
    text, is_whole, is_utf8 = read_given("memory://view/text.txt")[1:]
    assert (set(text), is_whole, is_utf8) == ({"a"}, False, True)


def test_a_url() -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/text":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", "12")
            self.end_headers()
            self.wfile.write(b"one\ntwo\nsix\n")

        def log_message(self, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            base = f"http://127.0.0.1:{server.server_port}"
            url = f"{base}/text"
            assert read_given(url) == (url, "one\ntwo\nsix\n", True, True)
            with pytest.raises(StreamtokError, match="404"):
                read_given(f"{base}/none")
        finally:
            server.shutdown()
            thread.join(60)


def test_only_the_start_of_a_large_file_is_text(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes("aé".encode() * 400_000)
    name, text, is_whole, is_utf8 = read_given(str(path))
    assert name == "large.txt"
    assert not is_whole
    assert is_utf8
    assert ("aé" * 400_000).startswith(text)
    assert len(text) > 40_000


def test_the_page_says_where_only_the_start_is_shown(
    open_page: Open, serve: Serve, tmp_path: Path
) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes(b"a line\n" * 100_000)
    page = open_page(serve(given=read_given(str(path))))
    ready(page, "text")
    assert "large.txt: only the start is shown" in page.inner_text("#text-note")
    page.set_input_files("#text-file", str(path))
    ready(page, "text")
    assert page.is_hidden("#text-note")
    path.write_bytes(b"x" * ((1 << 20) + 1))
    page.set_input_files("#text-file", str(path))
    page.wait_for_selector("#error:not([hidden])")
    assert "streamtok count takes files of any size" in page.inner_text("#error")
