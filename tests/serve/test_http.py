"""`streamtok serve --http`: vLLM's requests and responses, text from ids as they come, limits."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import streamtok
from streamtok.serve import http_app
from streamtok.serve.http_app import make_http_app
from streamtok.view import questions
from streamtok.view.web_server import Server

from ..conftest import encoding_of

GPT2 = streamtok.get_encoding("gpt2")
BERT_LIKE = encoding_of("llama3_style")


@contextlib.contextmanager
def served(encoding: Any = GPT2, connections: int = 100, **settings: Any) -> Iterator[httpx.Client]:
    server = Server(make_http_app(encoding, **settings), "127.0.0.1", 0, connections)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
            yield client
    finally:
        server.stop()
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served(max_model_len=1024) as made:
        yield made


@pytest.mark.parametrize("text", ["", "Tea for two", "naïve 日本語 🎉 <|endoftext|>", "x" * 50_000])
def test_tokenize_and_back(client: httpx.Client, text: str) -> None:
    ids = GPT2.encode(text, allowed_special="all")
    said = client.post("/tokenize", json={"model": "any", "prompt": text}).json()
    assert said == {"count": len(ids), "max_model_len": 1024, "tokens": ids, "token_strs": None}
    assert client.post("/detokenize", json={"tokens": ids}).json() == {"prompt": text}


def test_token_strings_and_special_tokens() -> None:
    with served(BERT_LIKE) as client:
        for add in (True, False):
            ids = BERT_LIKE.encode("a 日", allowed_special="all", add_special_tokens=add)
            asked = {"prompt": "a 日", "add_special_tokens": add, "return_token_strs": True}
            said = client.post("/tokenize", json=asked).json()
            assert said["tokens"] == ids
            assert said["max_model_len"] is None
            assert len(said["token_strs"]) == said["count"] == len(ids)
        assert said["token_strs"][0] == "a"


def test_prompts_that_grow(client: httpx.Client) -> None:
    prompt = ""
    for turn in range(40):
        prompt += f"User: question {turn}, naïve? Assistant: yes, please. " * 10
        said = client.post("/tokenize", json={"prompt": prompt}).json()
        assert said["tokens"] == GPT2.encode(prompt)


def test_health(client: httpx.Client) -> None:
    assert client.get("/health").status_code == 200
    assert client.post("/health").status_code == 405
    assert client.get("/tokenize").status_code == 405
    assert client.get("/other").status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/tokenize", b"{", "not JSON"),
        ("/tokenize", b"[" * 10_000, "not JSON"),
        ("/tokenize", b"[]", "must be a JSON object"),
        ("/tokenize", b"{}", "prompt must be text"),
        ("/tokenize", b'{"prompt": 1}', "prompt must be text"),
        ("/tokenize", b'{"messages": []}', "chat template"),
        ("/tokenize", b'{"prompt": "", "add_special_tokens": 1}', "must be true or false"),
        ("/detokenize", b"{}", "must be a list of ids"),
        ("/detokenize", b'{"tokens": [true]}', "must be a list of ids"),
        ("/detokenize", b'{"tokens": [-1]}', "must be a list of ids"),
        ("/detokenize", b'{"tokens": [999999]}', "tokens: "),
    ],
)
def test_refusals(client: httpx.Client, path: str, body: bytes, message: str) -> None:
    response = client.post(path, content=body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert message in error["message"]
    assert (error["code"], error["type"]) == (400, "BadRequestError")


def test_half_a_surrogate_pair_gives_what_the_encoding_gives(client: httpx.Client) -> None:
    said = client.post("/tokenize", content=b'{"prompt": "a\\ud83d"}').json()
    assert said["tokens"] == GPT2.encode("a\ud83d")


def test_bytes_of_a_request() -> None:
    with served(max_request=1000) as client:
        assert client.post("/tokenize", json={"prompt": "a" * 900}).status_code == 200
        response = client.post("/tokenize", json={"prompt": "a" * 1000})
        assert response.status_code == 413
        assert "1,000 bytes" in response.json()["error"]["message"]


def test_bytes_of_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_app, "_MAX_BODIES", 1)
    with served(max_request=100_000) as client:
        arrived, go_on = threading.Event(), threading.Event()

        def slowly() -> Iterator[bytes]:
            yield b'{"prompt": "' + b"a" * 60_000
            arrived.set()
            go_on.wait(60)
            yield b'"}'

        with ThreadPoolExecutor() as pool:
            first = pool.submit(lambda: client.post("/tokenize", content=slowly()))
            assert arrived.wait(60)
            second = {"prompt": "b" * 60_000}
            deadline = time.monotonic() + 60  # until the server has read the first one
            while (got := client.post("/tokenize", json=second).status_code) == 200:
                assert time.monotonic() < deadline
            assert got == 503
            assert client.post("/tokenize", json={"prompt": "small"}).status_code == 200
            go_on.set()
            assert first.result().status_code == 200
        assert client.post("/tokenize", json=second).status_code == 200


def test_a_body_must_come_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "_BODY_TIMEOUT", 0.2)

    def slowly() -> Iterator[bytes]:
        yield b"{"
        time.sleep(1)
        yield b"}"

    with served() as client:
        assert client.post("/tokenize", content=slowly()).status_code == 408


def test_short_requests_do_not_wait_for_long_ones(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All threads have a long one, and more wait, when a short one is answered."""
    answered, may_end, has_begun = http_app.answered, threading.Event(), threading.Semaphore(0)

    def held(answer: Any, body: bytearray) -> bytes:
        if len(body) > http_app._SMALL:
            has_begun.release()
            may_end.wait()
        return answered(answer, body)

    monkeypatch.setattr(http_app, "answered", held)
    n_threads = os.cpu_count() or 1
    long = {"prompt": "日本語のテキスト、naïve don't. " * 10_000}
    with ThreadPoolExecutor() as pool:
        try:
            waits = [
                pool.submit(lambda: client.post("/tokenize", json=long))
                for _ in range(n_threads + 2)
            ]
            for _ in range(n_threads):
                assert has_begun.acquire(timeout=60)
            said = client.post("/tokenize", json={"prompt": "short"})
            assert said.status_code == 200
            assert not any(one.done() for one in waits)
        finally:
            may_end.set()
        assert [one.result().status_code for one in waits] == [200] * len(waits)


def talk(client: httpx.Client) -> socket.socket:
    where = urlsplit(str(client.base_url))
    made = socket.create_connection((where.hostname, where.port), timeout=60)
    made.sendall(
        b"POST /detokenize/stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return made


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def events(received: bytes) -> list[Any]:
    said = [line[6:] for line in received.split(b"\r\n") for line in line.split(b"\n")
            if line.startswith(b"data: ")]  # fmt: skip
    return [one if one == b"[DONE]" else json.loads(one) for one in said]


def read_until(made: socket.socket, wanted: bytes) -> bytes:
    received = b""
    while wanted not in received:
        part = made.recv(1 << 16)
        assert part, received
        received += part
    return received


def test_text_from_ids_as_they_come(client: httpx.Client) -> None:
    with talk(client) as made:
        received = b""
        for id in GPT2.encode("Tea 🎉 two"):
            made.sendall(chunk(f"{id}\n".encode()))
            if GPT2.decode([id]).isascii():  # its text comes before the next id is sent
                received += read_until(made, json.dumps(GPT2.decode([id])).encode())
        made.sendall(b"0\r\n\r\n")
        received += read_until(made, b"[DONE]")
        found = events(received)
        assert b"content-type: text/event-stream" in received
        assert found[-1] == b"[DONE]"
        assert "".join(one["text"] for one in found[:-1]) == "Tea 🎉 two"


def test_an_open_character_at_the_end(client: httpx.Client) -> None:
    response = client.post("/detokenize/stream", content=b"12520 236")
    *texts, last = events(response.content)
    assert ("".join(one["text"] for one in texts), last) == (" \ufffd", b"[DONE]")


@pytest.mark.parametrize(
    ("body", "message"),
    [(b"1 x", "in decimal"), (b"-1", "in decimal"), (b"1" * 70_000, "a line has at most")],
)
def test_a_stream_that_is_no_ids(client: httpx.Client, body: bytes, message: str) -> None:
    *_, last = events(client.post("/detokenize/stream", content=body).content)
    assert message in last["error"]["message"]
    (last,) = events(client.post("/detokenize/stream", content=b"999999\n").content)
    assert last["error"]["code"] == 400


def test_a_stream_that_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_app, "_PAUSE", 0.2)
    with served() as client, talk(client) as made:
        assert b"no ids came for" in read_until(made, b'"code": 408')


def test_connections() -> None:
    with served(connections=3) as client, contextlib.ExitStack() as closing:
        where = urlsplit(str(client.base_url))
        first = [
            closing.enter_context(socket.create_connection((where.hostname, where.port), 60))
            for _ in range(3)
        ]
        assert client.get("/health").status_code == 200  # in the place of the first
        assert first[0].recv(1) == b""


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
def test_the_command() -> None:
    command = [sys.executable, "-m", "streamtok", "serve", "--http", "--tcp", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "-e", "gpt2", "--max-model-len", "77"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
            said = client.post("/tokenize", json={"prompt": "Tea"}).json()
            assert (said["tokens"], said["max_model_len"]) == (GPT2.encode("Tea"), 77)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    for wrong in (["--unix", "x"], ["--metrics", "127.0.0.1:1"]):
        found = subprocess.run([*command[:5], *wrong], capture_output=True, text=True, check=False)
        assert found.returncode == 2
        assert f"{wrong[0]} is not for --http" in found.stderr
