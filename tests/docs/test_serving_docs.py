"""Runs the commands of docs/serving.md unchanged."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import streamtok

from ..doc_blocks import blocks, need, run_shell
from ..serve_clients import command, make_text


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


@pytest.mark.parametrize(("script", "shown"), blocks("serving.md", "sh"))
def test_commands(tmp_path: Path, script: str, shown: str) -> None:
    need("bash", "nc", *(["curl"] if "curl" in script else []))
    assert run_shell(script.replace("9654", str(free_port())), tmp_path) == shown


def test_the_client_in_python(tmp_path: Path) -> None:
    [(code, _)] = blocks("serving.md", "python")
    names: dict = {}
    exec(code, names)
    path = str(tmp_path / "s")
    text = make_text(1000, 1)
    with command("--unix", path, "--format", "u32"):
        assert names["ids_of"](text, path) == streamtok.get_encoding("cl100k_base").encode(text)
        with pytest.raises(ValueError, match="byte 5 is not UTF-8"):
            names["ids_of"](b"hello\xff", path)


def test_a_promised_program_that_is_missing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMTOK_NEEDS", "nc no-such-program")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is not installed"):
        need("no-such-program")
    monkeypatch.delenv("STREAMTOK_NEEDS")
    with pytest.raises(pytest.skip.Exception):
        need("no-such-program")
