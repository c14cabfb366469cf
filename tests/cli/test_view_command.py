"""`streamtok view` as a process: what it serves and refuses. `tests/view` tests the page."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from ..serve_clients import ENV
from .test_cli import POSIX, fails, run, spawn, wrapped

PRICES = {
    "name": "an example",
    "date": "2026-11-01",
    "currency": "USD",
    "per_million_tokens": {"gpt2": 2},
}


@contextmanager
def viewing(*args: str) -> Iterator[tuple[str, httpx.Client]]:
    """The URL that is printed, and a client that has opened it."""
    command = [sys.executable, "-m", "streamtok", "view", *args]
    server = subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        base = url.partition("?")[0]
        with httpx.Client(base_url=base, trust_env=False, timeout=60) as client:
            assert client.get(url).status_code == 200
            yield url, client
    finally:
        server.terminate()
        errors = server.communicate(timeout=60)[1].decode()
    assert server.returncode == 0
    assert ("Ctrl-C" in errors) == ("-q" not in args)


@POSIX
def test_a_file_an_encoding_and_prices(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("some text\n")
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICES))
    with viewing("-e", "gpt2", "--prices", str(prices), str(text)) as (url, client):
        assert url.startswith("http://127.0.0.1:")
        about = client.get("api/about").json()
        assert about["first"] == "gpt2"
        assert about["text"] == "some text\n"
        assert about["given"] == {"name": "text.txt", "is_whole": True}
        assert about["prices"] == PRICES
        assert str(tmp_path) not in client.get("api/about").text


@POSIX
def test_a_token_is_made_for_each_run_and_a_port_can_be_chosen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with viewing("-q", "--port", str(port)) as (url, _):
        assert url.startswith(f"http://127.0.0.1:{port}/?token=")
        with viewing("-q") as (other, _):
            assert other.partition("=")[2] != url.partition("=")[2]
            assert len(url.partition("=")[2]) >= 32
        assert f"127.0.0.1:{port}" in fails("view", "--port", str(port))


def test_what_cannot_be_shown(tmp_path: Path) -> None:
    assert "No such file" in fails("view", str(tmp_path / "none"))
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    assert "the price list needs 'name'" in fails("view", "--prices", str(wrong))
    assert "Unknown encoding none" in fails("view", "-e", "none")
    for port in ("65536", "x", "-1"):
        with pytest.raises(SystemExit) as ended:
            run("view", f"--port={port}")
        assert ended.value.code == 2


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_without_the_extra(library: str) -> None:
    prelude = f"import sys; sys.modules[{library!r}] = None"
    if library == "starlette":
        prelude += "; sys.modules['starlette.applications'] = None"
    done = spawn(wrapped(prelude, "view"))
    assert done.returncode == 1
    assert f'need {library}: pip install "streamtok[web]"' in done.stderr.decode()
    assert b"Traceback" not in done.stderr
