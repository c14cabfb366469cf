"""`streamtok view` as a process: what it serves and refuses. `tests/view` tests the page."""

from __future__ import annotations

import contextlib
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from ..serve_clients import ENV
from .test_cli import POSIX, fails, run, spawn, wrapped


@contextmanager
def viewing(*args: str, **settings: Any) -> Iterator[tuple[str, httpx.Client]]:
    """The URL that is printed, and a client that has opened it."""
    with viewing_process(*args, **settings) as (_, url, client):
        yield url, client


@contextmanager
def viewing_process(*args: str, **settings: Any) -> Iterator[tuple[int, str, httpx.Client]]:
    """The process too, by its number."""
    command = [sys.executable, "-m", "streamtok", "view", *args]
    server = subprocess.Popen(
        command,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **settings,
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        base = url.partition("?")[0]
        with httpx.Client(base_url=base, trust_env=False, timeout=60) as client:
            assert client.get(url).status_code == 200
            yield server.pid, url, client
    finally:
        server.terminate()
        errors = server.communicate(timeout=60)[1].decode()
    assert server.returncode == 0
    assert ("Ctrl-C" in errors) == ("-q" not in args)
    assert "Traceback" not in errors


@POSIX
def test_a_file_and_an_encoding(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("some text\n")
    with viewing("-e", "gpt2", str(text)) as (url, client):
        assert url.startswith("http://127.0.0.1:")
        about = client.get("api/about").json()
        assert about["first"] == "gpt2"
        assert about["text"] == "some text\n"
        assert about["given"] == {"name": "text.txt", "is_whole": True, "is_utf8": True}
        assert str(tmp_path) not in client.get("api/about").text


def silent(url: str, number: int) -> list[socket.socket]:
    """Connections that begin a request, and go no further."""
    where = urlsplit(url)
    made = []
    for _ in range(number):
        made.append(socket.create_connection((where.hostname, where.port), timeout=60))
        made[-1].send(b"GET / HTTP/1.1\r\nHost: ")
    return made


@POSIX
def test_silent_clients_without_the_token_keep_nobody_out():
    def few_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    with contextlib.ExitStack() as stack:
        url, client = stack.enter_context(viewing("-q", preexec_fn=few_descriptors))
        for one in silent(url, 280):
            stack.enter_context(one)
        begun = time.monotonic()
        with httpx.Client(trust_env=False, timeout=60) as other:
            assert other.get(url).status_code == 200
        assert client.get("api/about").status_code == 200
        assert time.monotonic() - begun < 9  # before the silent ones are dropped


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_questions_that_json_makes_large_take_little_memory():
    body = b'{"text": [' + b"[]," * (10 << 20) + b"[]]}"
    with viewing_process("-q") as (pid, url, client):
        before = peak(pid)

        def ask(_):
            with httpx.Client(base_url=str(client.base_url), trust_env=False, timeout=60) as other:
                other.get(url)
                kind = {"Content-Type": "application/json"}
                return other.post("api/text", content=body, headers=kind).status_code

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(ask, range(4))) == [413] * 4
        assert peak(pid) - before < 8 * len(body)  # one at a time, and no lists made of it


def peak(pid: int) -> int:
    """The most memory that a process has had, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) << 10


@POSIX
def test_a_token_is_made_for_each_run_and_a_port_can_be_chosen():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with viewing("-q", "--port", str(port)) as (url, _):
        assert url.startswith(f"http://127.0.0.1:{port}/?token=")
        with viewing("-q") as (other, _):
            assert other.partition("=")[2] != url.partition("=")[2]
            assert len(url.partition("=")[2]) >= 32
        assert f"127.0.0.1:{port}" in fails("view", "--port", str(port))


def test_what_cannot_be_shown(tmp_path):
    done = run("view", "-")
    assert done.returncode == 2
    assert b"streamtok show takes a live feed" in done.stderr
    assert "No such file" in fails("view", str(tmp_path / "none"))
    assert "Unknown encoding none" in fails("view", "-e", "none")
    for port in ("65536", "x", "-1"):
        with pytest.raises(SystemExit) as ended:
            run("view", f"--port={port}")
        assert ended.value.code == 2


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_without_the_extra(library):
    prelude = f"import sys; sys.modules[{library!r}] = None"
    if library == "starlette":
        prelude += "; sys.modules['starlette.applications'] = None"
    done = spawn(wrapped(prelude, "view"))
    assert done.returncode == 1
    assert f'need {library}: pip install "streamtok[web]"' in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@POSIX
def test_a_warning_for_other_machines():
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
