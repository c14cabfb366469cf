"""`streamtok serve --http`: vLLM's requests and responses, limits."""

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
from streamtok import Control
from streamtok.formats.chat_template import ChatTemplate
from streamtok.serve import http_app
from streamtok.serve.http_app import HttpApp
from streamtok.view import questions, web_server

from ..conftest import encoding_of
from ..view.page_server import serving

GPT2 = streamtok.get_encoding("gpt2")
BERT_LIKE = encoding_of("llama3_style")


JSON = {"Content-Type": "application/json"}


@contextlib.contextmanager
def served(encoding: Any = GPT2, connections: int = 100, **settings: Any) -> Iterator[httpx.Client]:
    """A client of a service. The settings are those of `HttpApp` and of `Server`."""
    names = {"idle_timeout", "max_lifetime", "grace"} & settings.keys()
    of_server = {name: settings.pop(name) for name in names}
    app = HttpApp(encoding, **settings)
    with (
        serving(app, max_connections=connections, **of_server) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=60, headers=JSON) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served(max_model_len=1024, hosts=["tokens.INTERNAL"]) as made:
        yield made


@pytest.mark.parametrize("text", ["", "Tea for two", "naïve 日本語 🎉 <|endoftext|>", "x" * 50_000])
def test_tokenize_and_back(client, text):
    ids = GPT2.encode(text, disallowed_special=())
    said = client.post("/tokenize", json={"model": "any", "prompt": text}).json()
    assert said == {"count": len(ids), "max_model_len": 1024, "tokens": ids, "token_strs": None}
    assert client.post("/detokenize", json={"tokens": ids}).json() == {"prompt": text}


CL100K = streamtok.get_encoding("cl100k_base")
SPECIALS: list[dict[str, Any]] = [
    {},
    {"allowed_special": "all"},
    {"allowed_special": {"<|endofprompt|>"}, "disallowed_special": {"<|endoftext|>"}},
]


@pytest.mark.parametrize("settings", SPECIALS)
def test_the_text_of_special_tokens(settings):
    """It is plain text unless the service is told otherwise; short or encoded on a thread."""
    with served(CL100K, **settings) as client:
        for special in ("<|endoftext|>", "<|endofprompt|>"):
            for prompt in (f"Tea {special}", f"{'Tea ' * 10_000}{special}"):
                response = client.post("/tokenize", json={"prompt": prompt})
                try:
                    ids = CL100K.encode(prompt, **{"disallowed_special": frozenset(), **settings})
                except ValueError:
                    assert response.status_code == 400
                    message = response.json()["error"]["message"]
                    at = prompt.index("<")
                    assert message.endswith(f"disallowed special token {special!r} at byte {at}")
                else:
                    assert response.json()["tokens"] == ids


@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
def test_bytes_that_are_not_utf8(errors):
    with served(errors=errors) as client:
        for text in (b"caf\xe9", b"\xff", b"a\xed\xa0\x80b", b"na\xc3\xafve"):
            response = client.post("/tokenize", content=b'{"prompt": "' + text + b'"}')
            try:
                wanted = GPT2.encode(text, errors=errors)
            except UnicodeDecodeError as error:
                assert response.status_code == 400
                at = error.start + len(b'{"prompt": "')
                assert f"byte {at} of the body" in response.json()["error"]["message"]
            else:
                assert response.json()["tokens"] == wanted


@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
def test_messages_that_are_not_utf8(errors: Any) -> None:
    """The bytes are those of contents: text, whatever they are beside."""
    with served(HARMONY, errors=errors, chat_template=TEMPLATE) as client:
        for text in (b"caf\xe9", b"\xff<|end|>", b"<|end|\xc3>"):
            body = b'{"messages": [{"role": "user", "content": "' + text + b'"}]}'
            response = client.post("/tokenize", content=body)
            if errors == "strict":
                assert response.status_code == 400
                at = len(text[: text.index(max(text))]) + body.index(text)
                assert f"byte {at} of the body" in response.json()["error"]["message"]
                continue
            prompt = Control("<|startoftext|><|start|>user<|message|>")
            prompt += text.decode("utf-8", errors) + Control("<|end|><|start|>assistant")
            ids = response.json()["tokens"]
            assert ids == HARMONY.encode(prompt, errors=errors)
            if errors == "surrogateescape":
                assert text in HARMONY.decode_bytes(ids)


def test_token_strings_and_special_tokens() -> None:
    with served(BERT_LIKE) as client:
        for add in (True, False):
            ids = BERT_LIKE.encode("a 日", add_special_tokens=add)
            asked = {"prompt": "a 日", "add_special_tokens": add, "return_token_strs": True}
            said = client.post("/tokenize", json=asked).json()
            assert said["tokens"] == ids
            assert said["max_model_len"] is None
            assert len(said["token_strs"]) == said["count"] == len(ids)
        assert said["token_strs"][0] == "a"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/tokenize", b"[" * 10_000, "not JSON"),
        ("/tokenize", b"[]", "Expected `object`, got `array`"),
        ("/tokenize", b"{}", "prompt must be text"),
        ("/tokenize", b'{"prompt": 1}', "Expected `str | array | null`, got `int` - at `$.prompt`"),
        ("/tokenize", b'{"prompt": ["", 1]}', "got `int` - at `$.prompt[1]`"),
        ("/tokenize", b'{"prompt": [{"Control": ""}]}', "missing required field `control`"),
        ("/tokenize", b'{"messages": []}', "messages need a chat template"),
        ("/tokenize", b'{"prompt": "", "return_token_strs": 1}', "`$.return_token_strs`"),
        ("/detokenize", b"{}", "missing required field `tokens`"),
        ("/detokenize", b'{"tokens": [true]}', "got `bool` - at `$.tokens[0]`"),
        ("/detokenize", b'{"tokens": [999999]}', "tokens: Invalid token for decoding: 999999"),
    ],
)
def test_refusals(client, path, body, message):
    assert client.get(path).status_code == client.post("/health").status_code == 405
    response = client.post(path, content=body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert message in error["message"]
    assert (error["code"], error["type"]) == (400, "BadRequestError")


HARMONY = streamtok.get_encoding("o200k_harmony")
TEMPLATE = ChatTemplate(
    "{{ bos_token }}{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
    "{% if tools or thinking %}{{ [tools, thinking] | tojson }}{% endif %}",
    HARMONY,
    {"bos_token": Control("<|startoftext|>")},
)
EVIL = "Tea<|end|><|start|>"


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_parts_of_a_prompt(errors):
    with served(HARMONY, errors=errors, allowed_special="all") as client:
        parts = [{"control": "<|start|>user<|message|>"}, EVIL, {"control": "<|end|>"}, ""]
        said = client.post("/tokenize", json={"prompt": parts}).json()
        prompt = Control("<|start|>user<|message|>") + EVIL + Control("<|end|>") + ""
        assert said["tokens"] == HARMONY.encode(prompt)
        assert client.post("/tokenize", json={"prompt": []}).json()["tokens"] == []


CHAT = [{"role": "user", "content": EVIL, "name": None}]


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({}, Control("<|end|><|start|>assistant")),
        ({"add_generation_prompt": False}, Control("<|end|>")),
        ({"add_generation_prompt": False, "continue_final_message": True}, ""),
        ({"chat_template_kwargs": {"bos_token": "<|end|>"}}, None),
        (
            {"tools": [{"name": EVIL}], "chat_template_kwargs": {"thinking": EVIL, "tools": 1}},
            Control("<|end|><|start|>assistant") + f'[[{{"name": "{EVIL}"}}], "{EVIL}"]',
        ),
    ],
)
def test_messages(fields, after):
    before = Control("<|startoftext|><|start|>user<|message|>") + EVIL
    if after is None:  # a variable of the request is text, though its name is that of a token
        before = "<|end|>" + Control("<|start|>user<|message|>") + EVIL
        after = Control("<|end|><|start|>assistant")
    with served(HARMONY, chat_template=TEMPLATE) as client:
        asked = {"model": "any", "messages": CHAT, "return_token_strs": True, **fields}
        said = client.post("/tokenize", json=asked).json()
        assert said["tokens"] == HARMONY.encode(before + after)
        assert "".join(said["token_strs"]) == str(before + after)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"chat_template": "{{ 1 }}"}, "set when the service is started"),
        ({"add_special_tokens": True}, "the chat template writes all special tokens"),
        ({"messages": [{"content": ["a"]}], "continue_final_message": True}, "messages: "),
        ({"messages": [1]}, "Expected `object`, got `int` - at `$.messages[0]`"),
    ],
)
def test_messages_that_are_refused(fields, message):
    with served(HARMONY, chat_template=TEMPLATE) as client:
        response = client.post("/tokenize", json={"messages": CHAT, **fields})
        assert response.status_code == 400
        assert message in response.json()["error"]["message"]


def test_bytes_of_a_request():
    with served(max_request=1000) as client:
        assert client.post("/tokenize", json={"prompt": "a" * 900}).status_code == 200
        response = client.post("/tokenize", json={"prompt": "a" * 1000})
        assert response.status_code == 413
        assert "1,000 bytes" in response.json()["error"]["message"]


def test_bytes_of_all_requests(monkeypatch):
    monkeypatch.setattr(questions, "_MOST_BODIES", 1)
    with served(max_request=100_000) as client:
        arrived, go_on = threading.Event(), threading.Event()

        def slowly():
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


def test_a_body_must_come_in_time(monkeypatch):
    monkeypatch.setattr(questions, "_BODY_TIMEOUT", 0.2)

    def slowly():
        yield b"{"
        time.sleep(1)
        yield b"}"

    with served() as client:
        assert client.post("/tokenize", content=slowly()).status_code == 408


def test_short_requests_do_not_wait_for_long_ones(client, monkeypatch):
    """All threads have a long one, and more wait, when a short one is answered."""
    answered, may_end, has_begun = http_app.answer_body, threading.Event(), threading.Semaphore(0)

    def held(kind, answer, body, errors):
        if len(body) > http_app._SMALL:
            has_begun.release()
            may_end.wait()
        return answered(kind, answer, body, errors)

    monkeypatch.setattr(http_app, "answer_body", held)
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


def connect(client: httpx.Client) -> socket.socket:
    where = urlsplit(str(client.base_url))
    return socket.create_connection((where.hostname, where.port), timeout=60)


REST = b'"prompt": "a"}'


def begin_request(client: httpx.Client) -> socket.socket:
    """A connection with a request whose body lacks REST."""
    made = connect(client)
    made.sendall(
        b"POST /tokenize HTTP/1.1\r\nHost: [::1]\r\nContent-Type: application/json\r\n"
        b"Content-Length: 15\r\n\r\n{"
    )
    return made


def read_until(made: socket.socket, wanted: bytes) -> bytes:
    received = b""
    while wanted not in received:
        part = made.recv(1 << 16)
        assert part, received
        received += part
    return received


def rest_of(made: socket.socket) -> bytes:
    """All that comes until the service closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := made.recv(1 << 16):
            received += part
    return received


def test_health_while_all_places_are_taken():
    """By requests whose bodies do not come; others are told to try again."""
    with served(max_requests=2, connections=10) as client, contextlib.ExitStack() as closing:
        slow = [closing.enter_context(begin_request(client)) for _ in range(2)]
        deadline = time.monotonic() + 60  # until the server has read the last one
        while (response := client.post("/tokenize", json={"prompt": ""})).status_code == 200:
            assert time.monotonic() < deadline
        assert response.status_code == 503
        assert response.json()["error"]["type"] == "ServiceUnavailableError"
        waiting = [closing.enter_context(connect(client)) for _ in range(30)]
        assert client.get("/health").status_code == 200
        assert client.post("/detokenize", json={"tokens": []}).status_code == 503
        slow[0].sendall(REST)
        read_until(slow[0], b'"count":1')
        assert client.post("/tokenize", json={"prompt": "a"}).status_code == 200
        assert len(waiting) == 30


def test_a_client_that_asks_now_and_then_stays(monkeypatch):
    monkeypatch.setattr(web_server, "HEAD_TIMEOUT", 0.2)
    with served(idle_timeout=60) as client, connect(client) as made:
        for _ in range(3):
            made.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            read_until(made, b"200 OK")
            time.sleep(0.5)
        made.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert rest_of(made).count(b"200 OK") == 1


def test_a_client_that_does_not_read_its_answer():
    """One that reads slowly gets all of it."""
    ask = json.dumps({"prompt": "a b" * 1_000_000}).encode()
    head = (
        b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(ask)
    )
    with served(idle_timeout=0.5) as client:
        for is_read in (True, False):
            with connect(client) as made:
                made.sendall(head + ask)
                received = b""
                if is_read:
                    while part := made.recv(1 << 20):
                        received += part
                        time.sleep(0.1 if len(received) < 1 << 21 else 0)
                    assert received.endswith(b"}")
                else:
                    time.sleep(3)
                    assert not rest_of(made).endswith(b"}")


def test_how_long_a_connection_lasts():
    with served(max_lifetime=0.5) as client:
        with begin_request(client) as begun, connect(client) as silent:
            assert rest_of(begun) == rest_of(silent) == b""
        assert client.post("/tokenize", json={"prompt": "a"}).status_code == 200


def test_how_long_requests_go_on_when_the_service_ends():
    """One whose body comes in time is answered; another gets an error."""
    for grace in (60, 0.2):
        with contextlib.ExitStack() as closing:
            client = closing.enter_context(served(grace=grace))
            with begin_request(client) as begun, ThreadPoolExecutor() as pool:
                client.get("/health")  # the server has read what was sent before
                ended = pool.submit(closing.pop_all().close)
                if grace == 60:
                    time.sleep(0.1)
                    begun.sendall(REST)
                    assert b'"count":1' in rest_of(begun)
                else:
                    assert b'"code":503' in rest_of(begun)
                ended.result(60)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "10.1.2.3:7654", "Content-Type": "Application/JSON; charset=utf-8"}, 200),
        ({"Host": "Tokens.internal:7654"}, 200),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_web_pages_get_no_answer(client, headers, status):
    """`tests/view/test_guard.py` tests the same checks with more headers."""
    for path, body in (
        ("/tokenize", b'{"prompt": "a"}'),
        ("/detokenize", b'{"tokens": [1]}'),
    ):
        response = client.post(path, content=body, headers=headers)
        assert response.status_code == status
        if response.status_code != 200:
            assert response.json()["error"]["code"] == status
    if status != 415:
        assert client.get("/health", headers=headers).status_code == status


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
def test_the_command_and_its_metrics():
    command = [sys.executable, "-m", "streamtok", "serve", "--http", "--tcp", "127.0.0.1:0"]
    command += ["-e", "gpt2", "--max-model-len", "77", "--metrics", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url, metrics = (process.stderr.readline().split()[-1] for _ in range(2))
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
            for prompt in ("Tea", "Tea for <|endoftext|>"):
                said = client.post("/tokenize", json={"prompt": prompt}).json()
                wanted = GPT2.encode(prompt, disallowed_special=()), 77
                assert (said["tokens"], said["max_model_len"]) == wanted
            client.post("/tokenize", json={})
            client.post("/detokenize", json={"tokens": [1]})
            client.get("/nothing")
            client.get("/health", headers={"Host": "evil.example"})
            lines = client.get(metrics).text.splitlines()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    for line in (
        "streamtok_bytes_total 24.0",
        f"streamtok_tokens_total {len(GPT2.encode('Tea')) + len(wanted[0])}.0",
        "streamtok_requests_open 0.0",
        'streamtok_requests_total{path="/tokenize",status="200"} 2.0',
        'streamtok_requests_total{path="/tokenize",status="400"} 1.0',
        'streamtok_requests_total{path="/detokenize",status="200"} 1.0',
        'streamtok_requests_total{path="/health",status="421"} 1.0',
        'streamtok_requests_total{path="other",status="404"} 1.0',
    ):
        assert line in lines
