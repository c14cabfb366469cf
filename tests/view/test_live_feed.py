"""A live feed: as chunks arrive, the numbers are those of both lanes; in a browser, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok.view.live_feed import LiveFeed
from streamtok.views.lanes import make_lanes

from ..cli.test_cli import POSIX
from ..serve_clients import ENV
from .conftest import Open, Serve, until, violations
from .page_server import client_of, served

ENC = streamtok.get_encoding("gpt2")
WORDS = [" the", "a", "\n", "日本語", "🎉", "Unbelievable", " tokens", "...", "  ", "<|endoftext|>"]


@settings(max_examples=100)
@given(words=st.lists(st.sampled_from(WORDS), max_size=15), data=st.data())
def test_the_numbers_of_both_lanes(words: list[str], data: st.DataObject) -> None:
    text = "".join(words).encode()
    feed = LiveFeed(ENC)
    chunks = []
    rows: list[dict[str, Any]] = []
    at = 0
    while at < len(text):
        size = data.draw(st.integers(1, 9))
        chunks.append(text[at : at + size])
        at += size
        feed.add(chunks[-1])
        rows += json.loads(json.dumps(feed.since(len(rows), 0)))["chunks"]
    feed.add(b"", final=True)
    found = feed.since(0, 0)
    assert found is not None
    lanes = make_lanes(ENC, text, chunks=chunks)
    assert found["totals"] == {
        "naive": lanes.naive_tokens,
        "wrong": lanes.wrong_tokens,
        "exact": lanes.tokens,
        "broken": lanes.broken_chunks,
    }
    assert found["bytes"] == len(text)
    assert found["is_done"]
    for row, kept, lane in zip(rows, found["chunks"], lanes.chunks[:-1], strict=False):
        assert row["shown"] == kept["shown"] == lane.shown
        assert [one["id"] for one in kept["exact"]] == [one.token.id for one in lane.exact]
        assert (row["pending"], row["pending_shown"]) == (lane.pending, lane.pending_shown)
        wrong = [one["is_wrong"] for one in kept["naive"]]
        assert wrong == [one.is_wrong for one in lane.naive]
        # What was said at once was never taken back.
        for early, late in zip(row["naive"], kept["naive"], strict=True):
            assert early["is_wrong"] in (None, late["is_wrong"])


def test_bytes_that_are_not_utf8() -> None:
    feed = LiveFeed(ENC)
    for chunk in (b"one \xff\xfe two", b" \xe6", b"x\xe6\x97", b"\xa5 end"):
        feed.add(chunk)
    feed.add(b"", final=True)
    found = feed.since(0, 0)
    assert found is not None
    ids = [one["id"] for row in found["chunks"] for one in row["exact"]]
    data = b"one \xff\xfe two \xe6x\xe6\x97\xa5 end"
    assert ids == ENC.encode(data, errors="replace")
    assert not any(one["is_wrong"] for one in found["chunks"][0]["naive"])


def test_no_more_is_kept_than_can_be_shown() -> None:
    feed = LiveFeed(ENC)
    feed.run([b"some words here\n" * 100] * 1000)
    found = feed.since(0, 0)
    assert found is not None
    assert found["number"] == 2001
    assert len(found["chunks"]) == 500
    assert found["skipped"] == 1501
    assert found["totals"]["exact"] == ENC.count("some words here\n" * 100_000)
    assert len(feed._run._open) == 0


def test_an_error_is_told() -> None:
    def blocks() -> Any:
        yield b"text"
        raise OSError(5, "the pipe is broken")

    feed = LiveFeed(ENC)
    feed.run(blocks())
    found = feed.since(1, 1)
    assert found is not None
    assert "the pipe is broken" in found["error"]
    with served() as url, client_of(url) as client:
        assert client.get("api/feed?from=0&open=0").status_code == 404
    with served(feed=feed) as url, client_of(url) as client:
        assert client.get("api/feed?from=x").status_code == 400
        assert client.get("api/feed?from=0&open=0").json()["error"]


def test_in_a_browser(open_page: Open, serve: Serve) -> None:
    feed = LiveFeed(ENC)
    text = "Unbelievable streams of 日本語 tokens, cut anywhere.".encode()
    url = serve(feed=feed, encoding=ENC)
    page = open_page(url)
    assert page.is_visible("#panel-stream")
    for at in range(0, len(text), 7):
        feed.add(text[at : at + 7])
    until(page, "document.querySelector('#stream-feed').textContent.startsWith('8 chunks,')")
    assert page.locator("#exact-tokens .pending").count() == 1
    feed.add(b"", final=True)
    until(page, "document.querySelector('#stream-feed').textContent.includes('and the end')")
    lanes = make_lanes(ENC, text, 7)
    for lane, wanted in (
        ("exact", ENC.encode(text)),
        ("naive", [one.token.id for row in lanes.chunks for one in row.naive]),
    ):
        boxes = f"#{lane}-tokens .t"
        assert page.eval_on_selector_all(boxes, "all => all.map((b) => b.token.id)") == wanted
    wrong = page.eval_on_selector_all(
        "#naive-tokens .t", "all => all.map((box) => box.classList.contains('wrong'))"
    )
    assert wrong == [one.is_wrong for row in lanes.chunks for one in row.naive]
    assert page.locator("#stream-counts dd").all_inner_texts()[1] == str(sum(wrong))
    assert violations(page) == []


@POSIX
def test_the_command(open_page: Open) -> None:
    """`streamtok view -`, with a pipe that somebody writes to; SIGINT ends it."""
    import signal

    command = [sys.executable, "-m", "streamtok", "view", "-", "-q", "-e", "gpt2"]
    server = subprocess.Popen(
        command, env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        page = open_page(url)
        server.stdin.write(b"first line\n")
        server.stdin.flush()
        until(page, "document.querySelector('#exact-tokens').textContent.includes('first')")
        server.stdin.write("sécond\n".encode())
        server.stdin.flush()
        until(page, "document.querySelector('#exact-tokens').textContent.includes('sé')")
        os.kill(server.pid, signal.SIGINT)
        output, errors = server.communicate(timeout=60)
        assert (output, errors, server.returncode) == (b"", b"", 0)
        page.context.close()
        page.wrong.clear()  # the browser's notes of a server that is gone
    finally:
        server.kill()
        server.communicate()


@POSIX
def test_a_warning_for_other_machines() -> None:
    command = [sys.executable, "-m", "streamtok", "view", "--host", "0.0.0.0"]
    server = subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        local = url.replace("0.0.0.0", "127.0.0.1")
        with httpx.Client(trust_env=False, timeout=60) as client:
            assert client.get(local).status_code == 200
            assert client.get(local, headers={"Host": "evil.example"}).status_code == 421
        server.terminate()
        errors = server.communicate(timeout=60)[1].decode()
        assert "warning: other machines can reach" in errors
        assert server.returncode == 0
    finally:
        server.kill()
        server.communicate()
