"""Every option of `streamtok serve` with each of its two services: obeyed, or refused by name."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from streamtok import serve
from streamtok.cli import cmd_serve
from streamtok.cli.main import main
from streamtok.formats.chat_template import ChatTemplate
from streamtok.serve import http_app

# A value that is not the default, and the services that have the option.
OPTIONS: dict[str, tuple[list[str], str]] = {
    "--tcp": (["127.0.0.1:1"], "both"),
    "--unix": (["/x/socket"], "socket"),
    "--unix-mode": (["660"], "socket"),
    "--http": ([], "http"),
    "--chat": (["model"], "http"),
    "--max-request": (["1MiB"], "http"),
    "--max-model-len": (["7"], "http"),
    "--hosts": (["one,two"], "http"),
    "--encoding": (["gpt2"], "both"),
    "--special": (["allow"], "both"),
    "--errors": (["replace"], "both"),
    "--max-pending": (["2MiB"], "socket"),
    "--format": (["u32"], "socket"),
    "--max-connections": (["7"], "both"),
    "--idle-timeout": (["7"], "both"),
    "--max-lifetime": (["7"], "both"),
    "--grace": (["7"], "both"),
    "--metrics": (["127.0.0.1:7"], "both"),
    "--quiet": ([], "both"),
}


def options() -> list[str]:
    """The long names of all options of the command."""
    subparsers = argparse.ArgumentParser().add_subparsers()
    cmd_serve.add_parser(subparsers)
    actions = subparsers.choices["serve"]._actions
    names = [action.option_strings[-1] for action in actions]
    return [name for name in names if name not in ("-h", "--help")]


def started(monkeypatch: pytest.MonkeyPatch, *args: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what the service would have been started with."""
    found: dict[str, Any] = {}

    def start(encoding: Any, **settings: Any) -> int:
        found.update(settings, encoding=encoding.name)
        found["on_ready"] = "on_ready" in settings
        return 0

    monkeypatch.setattr(ChatTemplate, "from_folder", lambda folder, encoding: folder)
    monkeypatch.setattr(serve, "run", start)
    monkeypatch.setattr(http_app, "run_http", start)
    return main(["serve", *args]), found


@pytest.mark.parametrize("service", ["socket", "http"])
@pytest.mark.parametrize("option", options())
def test_an_option(monkeypatch, capsys, option, service):
    value, services = OPTIONS[option]
    if option == "--http":
        assert started(monkeypatch)[1].keys() != started(monkeypatch, option)[1].keys()
        return
    base = ["--http"] if service == "http" else []
    if option == "--unix-mode" and service == "socket":
        base += ["--unix", "/x/other"]
    code, before = started(monkeypatch, *base)
    assert code == 0
    code, after = started(monkeypatch, *base, option, *value)
    if services in ("both", service):
        assert code == 0
        assert after != before
        assert after.keys() == before.keys()
    else:
        assert (code, after) == (2, {})
        wanted = f"{option} is not for --http" if service == "http" else f"{option} needs --http"
        assert wanted in capsys.readouterr().err


@pytest.mark.parametrize("given", ["", "a:80", "*", "a,,b", "http://a", "a b", "a,"])
def test_names_that_no_host_header_can_have(monkeypatch, capsys, given):
    with pytest.raises(SystemExit):
        started(monkeypatch, "--http", "--hosts", given)
    assert "names without ports" in capsys.readouterr().err
    assert started(monkeypatch, "--http", "--hosts", "One.lan, two_2")[1]["hosts"] == [
        "One.lan",
        "two_2",
    ]
