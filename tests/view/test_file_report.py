"""What is said of a file, however it is cut into blocks, against one look at the whole."""

from __future__ import annotations

import codecs
import gzip
import http.server
import threading
from pathlib import Path
from typing import Any

import fsspec
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok.errors import StreamtokError
from streamtok.view import file_report as module
from streamtok.view.file_jobs import MAX_JOBS
from streamtok.view.file_report import CLASSES, FileReport
from streamtok.view.given import Given

from .page_server import client_of, served

ENC = streamtok.get_encoding("gpt2")
WORDS = [
    b"a", b" the", b"\n", b"\n\n", b"\r\n", "日本".encode(), "🎉".encode(), b"\xff", b"\xe6\x97",
    b"\xed\xa0\x80", b"<|endoftext|>", b"<|endof", b"text|>", b" token" * 40,
]  # fmt: skip


def slowly(data: bytes) -> dict[str, Any]:
    """The report, from the whole."""
    how: dict[str, Any] = {"disallowed_special": (), "errors": "replace"}
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    counts = [len(ENC.encode(line, **how)) for line in lines]
    starts = [sum(len(line) + 1 for line in lines[:i]) for i in range(len(lines))]
    histogram = [0] * CLASSES
    for count in counts:
        histogram[min(count.bit_length(), CLASSES - 1)] += 1
    order = sorted(range(len(lines)), key=lambda i: (-counts[i], i))[: module.MOST_LINES]
    bad: list[int] = []

    def note(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        bad.extend(range(error.start, error.end))
        return "", error.end

    codecs.register_error("streamtok-tests-note", note)
    data.decode("utf-8", "streamtok-tests-note")
    runs = [at for at in bad if at - 1 not in bad]
    special = b"<|endoftext|>"
    return {
        "n_bytes": len(data),
        "is_done": True,
        "tokens": len(ENC.encode(data, **how)),
        "lines": len(lines),
        "line_tokens": sum(counts),
        "histogram": histogram,
        "most": [(counts[i], i + 1, starts[i]) for i in order],
        "bad_bytes": len(bad),
        "bad_places": runs,
        "refused_lines": sum(special in line for line in lines),
        "refused_places": [
            at for at in range(len(data)) if data.startswith(special, at)
        ],
    }  # fmt: skip


@settings(max_examples=150)
@given(data=st.lists(st.sampled_from(WORDS), max_size=30).map(b"".join), cuts=st.data())
def test_any_blocks(data: bytes, cuts: st.DataObject) -> None:
    report = FileReport(ENC)
    at = 0
    while at < len(data):
        size = cuts.draw(st.integers(1, 12))
        report.add(data[at : at + size])
        at += size
    report.finish()
    report.finish()
    found = report.as_json()
    previews = [one["shown"] for one in found["most"]]
    found["most"] = [(one["tokens"], one["line"], one["start"]) for one in found["most"]]
    found["bad_places"] = [at for at, _ in found["bad_places"]]
    found["refused_places"] = [at for at, _ in found["refused_places"]]
    wanted = slowly(data)
    # Two runs of bytes that touch a block's end may be told apart; the first byte is the same.
    assert [at for at in found["bad_places"] if at in wanted["bad_places"]] == wanted["bad_places"]
    found["bad_places"] = wanted["bad_places"]
    assert found == wanted
    from streamtok.views.visible import visible

    for shown, (_, _, start) in zip(previews, found["most"], strict=True):
        assert shown == visible(data[start:].split(b"\n")[0][:100])


def test_many_lines(tmp_path: Path) -> None:
    lines = [f"{i} {'word ' * (i % 97)}" for i in range(20_000)]
    lines[7777] += "x y " * 200
    path = tmp_path / "lines.txt.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    report = FileReport(ENC)
    reading = Given(str(path)).open()
    for block in reading:
        report.add(block)
    report.finish()
    found = report.as_json()
    assert reading.read == path.stat().st_size
    assert found["lines"] == 20_000
    assert found["tokens"] == len(ENC.encode("\n".join(lines)))
    assert found["line_tokens"] == sum(map(len, ENC.encode_batch(lines)))
    assert found["most"][0]["line"] == 7778
    assert len(found["most"]) == module.MOST_LINES


def test_the_jobs_of_pages(tmp_path: Path) -> None:
    path = tmp_path / "given.txt"
    path.write_bytes(b"one\ntwo\n" * 1000)
    with served(given=Given(str(path))) as url, client_of(url) as client:
        about = client.get("api/about").json()
        assert about["given"] == {"name": "given.txt", "is_whole": True, "is_utf8": True}
        assert str(tmp_path) not in client.get("api/about").text
        question = {"encoding": "gpt2", "source": "given"}
        job = client.post("api/file/begin", json=question).json()["job"]
        report = client.post("api/file/read", json={"job": job}).json()
        while not report["is_done"]:
            report = client.post("api/file/read", json={"job": job}).json()
        assert report["lines"] == 2000
        assert report["read"] == report["size"] == path.stat().st_size
        # An upload, while others begin.
        question["source"] = "upload"
        job = client.post("api/file/begin", json=question).json()["job"]
        headers = {"Content-Type": "application/octet-stream"}
        for _ in range(3):
            answer = client.post(f"api/file/feed?job={job}", content=b"a b\n", headers=headers)
            assert answer.status_code == 200
        assert client.post("api/file/read", json={"job": job}).status_code == 400
        assert client.post("api/file/finish", json={"job": job}).json()["lines"] == 3
        late = client.post(f"api/file/feed?job={job}", content=b"x", headers=headers)
        assert late.status_code == 409
        for _ in range(MAX_JOBS):
            client.post("api/file/begin", json=question)
        assert client.post("api/file/finish", json={"job": job}).status_code == 409


def test_what_an_upload_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamtok.view import file_jobs

    monkeypatch.setattr(file_jobs, "MAX_BLOCK", 100)
    with served() as url, client_of(url) as client:
        question = {"encoding": "gpt2", "source": "given"}
        response = client.post("api/file/begin", json=question)
        assert (response.status_code, "no file was given" in response.text) == (400, True)
        for source in ("/etc/passwd", "file:///etc/passwd", None):
            response = client.post("api/file/begin", json={**question, "source": source})
            assert response.status_code == 400
        job = client.post("api/file/begin", json={**question, "source": "upload"}).json()["job"]
        feed = f"api/file/feed?job={job}"
        assert (
            client.post(feed, content=b"x", headers={"Content-Type": "text/plain"}).status_code
            == 415
        )
        headers = {"Content-Type": "application/octet-stream"}
        response = client.post(feed, content=b"x" * 101, headers=headers)
        assert (response.status_code, "at most 0 MiB" in response.text) == (413, True)
        assert client.post("api/file/feed?job=x", content=b"", headers=headers).status_code == 409


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        Given(str(tmp_path / "none"))
    with pytest.raises(OSError):
        Given((tmp_path / "none").as_uri())
    path = tmp_path / "damaged.gz"
    path.write_bytes(gzip.compress(b"text" * 1000)[:-20])
    given = Given(str(path))
    with pytest.raises(StreamtokError):
        given.start()


def test_an_object_in_a_store(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    given = Given(path.as_uri())
    assert given.size == path.stat().st_size
    assert given.start() == ("one\ntwo\n", True, True)
    with fsspec.open("memory://view/text.txt", "wb") as file:
        file.write(b"a" * 700_000)
    reading = Given("memory://view/text.txt").open()
    assert sum(map(len, reading)) == reading.read == reading.size == 700_000


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
            reading = Given(f"{base}/text").open()
            assert b"".join(reading) == b"one\ntwo\nsix\n"
            assert reading.read == reading.size == 12
            assert Given(f"{base}/text").start() == ("one\ntwo\nsix\n", True, True)
            with pytest.raises(StreamtokError, match="404"):
                Given(f"{base}/none").start()
        finally:
            server.shutdown()
            thread.join(60)


def test_only_the_start_of_a_large_file_is_text(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes("aé".encode() * 400_000)
    text, is_whole, is_utf8 = Given(str(path)).start()
    assert not is_whole
    assert is_utf8
    assert ("aé" * 400_000).startswith(text)
    assert len(text) > 40_000


def test_an_encoding_without_streams() -> None:
    look_behind = streamtok.Encoding(
        "look-behind", pat_str=r"(?<=a)b|.", mergeable_ranks=ENC._vocabulary, special_tokens={}
    )
    with served(encoding=look_behind) as url, client_of(url) as client:
        question = {"encoding": "look-behind", "source": "upload"}
        response: httpx.Response = client.post("api/file/begin", json=question)
        assert response.status_code == 422
        assert "look-behind" in response.json()["error"]
