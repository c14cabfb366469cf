"""The page in another application, under a prefix; what the package must have for it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

import streamtok
from streamtok.view import make_app

from ..doc_blocks import DOCS
from ..encodings import make_encoding
from .conftest import Open
from .page_server import serving

TOP = DOCS.parent
STATIC = Path(streamtok.__file__).parent / "view" / "static"


def test_under_a_prefix(open_page: Open) -> None:
    app = Starlette(routes=[Mount("/a/tokens", make_app(token="secret", text="Hello world"))])
    with serving(app) as url:
        page = open_page(f"{url}a/tokens?token=secret")  # without the slash
        page.wait_for_selector("#panel-text[data-state=ready]")
        assert page.locator("#text-tokens .t").count() == 2
        (cookie,) = page.context.cookies()
        assert (cookie["path"], cookie["httpOnly"], cookie["sameSite"]) == (
            "/a/tokens/",
            True,
            "Strict",
        )
        page.reload()
        page.wait_for_selector("#panel-text[data-state=ready]")
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
            assert client.get("a/tokens/").status_code == 403
            assert client.get("a/tokens/api/about").status_code == 403
        page.goto("about:blank")  # it may still ask for something, and the server is to stop


def test_for_other_names() -> None:
    page = make_app(token=None, hosts=["tokens.example.org"])
    app = Starlette(routes=[Mount("/tokens", page)])
    with serving(app) as url, httpx.Client(trust_env=False, timeout=60) as client:
        headers = {"Host": "tokens.example.org"}
        assert "streamtok view" in client.get(f"{url}tokens/", headers=headers).text
        about = client.get(f"{url}tokens/api/about", headers=headers)
        assert about.json()["first"] == "cl100k_base"
        assert client.get(f"{url}tokens/").status_code == 421  # not under this name


def test_two_pages_on_one_host() -> None:
    """Browsers send the cookies of a host to all of its ports."""
    with (
        serving(make_app(token="one")) as first,
        serving(make_app(token="two")) as second,
        httpx.Client(trust_env=False, timeout=60) as client,
    ):
        for url, token in ((first, "one"), (second, "two")):
            assert client.get(f"{url}?token={token}").status_code == 200
        for url in (first, second):
            assert client.get(f"{url}api/about").status_code == 200


def test_encodings_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="Unknown encoding none"):
        make_app(token=None, encoding="none")


def test_one_encoding_has_the_name_of_another() -> None:
    with (
        serving(make_app(token=None, encoding=make_encoding(name="gpt2"))) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=60) as client,
    ):
        about = client.get("api/about").json()
        assert about["first"] == "gpt2 (given)"
        question = {"special": "plain", "text": "the", "at": 0}
        for name, count in (("gpt2 (given)", 3), ("gpt2", 1)):
            answer = client.post("api/text", json={**question, "encoding": name})
            assert answer.json()["n_tokens"] == count


def test_the_files_of_the_page() -> None:
    files = {path.name: path.read_text("utf-8") for path in STATIC.iterdir()}
    for name, text in files.items():
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), name
        # What would let text in as HTML, or as a script.
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, name
        for imported in re.findall(r'from "\./([\w.]+)"', text):
            assert imported in files
        for wanted in re.findall(r'(?:src|href)="([\w.]+)"', text):
            assert wanted in files


def test_packages_have_the_files() -> None:
    """The sdist by `MANIFEST.in`, the wheel by package-data."""
    manifest = (TOP / "MANIFEST.in").read_text("utf-8")
    assert "recursive-include streamtok/view/static *" in manifest
    project = (TOP / "pyproject.toml").read_text("utf-8")
    assert json.dumps("streamtok.view") + ' = ["static/*"]' in project
