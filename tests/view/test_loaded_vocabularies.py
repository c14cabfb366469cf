"""Vocabularies that the page sends: limited, parsed as `load` parses files, and forgotten."""

from __future__ import annotations

import httpx
import pytest

from streamtok.formats.packed import dumps_packed
from streamtok.view import app
from streamtok.view.encodings import MAX_LOADED

from ..encodings import make_encoding

BINARY = {"Content-Type": "application/octet-stream"}


def send(client: httpx.Client, name: str, data: bytes) -> httpx.Response:
    return client.post("api/encoding", params={"name": name}, content=data, headers=BINARY)


def opened(client: httpx.Client, encoding: str, text: str = "abc") -> httpx.Response:
    question = {"encoding": encoding, "special": "plain", "text": text, "at": 0}
    return client.post("api/text", json=question)


def test_the_last_ones_are_kept(client: httpx.Client) -> None:
    data = dumps_packed(make_encoding())
    names = [f"v{i} (loaded)" for i in range(MAX_LOADED + 1)]
    for i, name in enumerate(names):
        assert send(client, f"../../v{i}.streamtok", data).json() == {"name": name}
    assert client.get("api/about").json()["encodings"][-MAX_LOADED:] == names[1:]
    assert opened(client, names[0]).status_code == 422
    assert len(opened(client, names[1]).json()["ids"]) == 3


@pytest.mark.parametrize(
    "data", [b"", b"{", b"{" * 100_000, b'{"model":' * 9999, b"\x80\x04.", b"#version: 0.2\na b\n"]
)
def test_damaged_files(client: httpx.Client, data: bytes) -> None:
    response = send(client, "tokenizer.json", data)
    assert response.status_code == 422
    assert "tokenizer.json" in response.json()["error"]
    assert "streamtok-" not in response.json()["error"]  # the folder in which it was read


def test_large_and_other_bodies(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.post("api/encoding", json={}).status_code == 415
    monkeypatch.setattr(app, "MAX_VOCABULARY", 1 << 20)
    response = send(client, "a.json", b"{" + b" " * (1 << 20))
    assert response.status_code == 413
    assert "at most 1,048,576 bytes" in response.json()["error"]
