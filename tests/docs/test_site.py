"""The check of the built site finds what it is for."""

from __future__ import annotations

from pathlib import Path

from ..doc_blocks import load_tool

PAGE = '<h1 id="top">Tea</h1><a href="{}">more</a>{}'


def found(folder: Path, link: str = "#top", more: str = "", css: str = "") -> list[str]:
    (folder / "sub").mkdir(exist_ok=True)
    (folder / "index.html").write_text(PAGE.format(link, more))
    (folder / "sub" / "other.html").write_text(PAGE.format("../index.html#top", ""))
    (folder / "style.css").write_text(css)
    problems: list[str] = load_tool("check_site").problems(folder)
    return problems


RIGHT = [
    ("#top", "", ""),
    ("#", "", ""),
    ("sub/other.html", '<link href="style.css?v=1">', "a { background: url(data:x) }"),
    ("sub/other.html#top", '<img src="data:image/png;base64,x">', "@import 'more.css'"),
    ("https://example.org", "<a>no link</a>", ""),
    ("mailto:tea@example.org", "", ""),
]
WRONG = [
    ("gone.html", "", "", "index.html: there is no gone.html"),
    ("#gone", "", "", "index.html: there is no anchor #gone"),
    ("sub/other.html#gone", "", "", "there is no anchor sub/other.html#gone"),
    ("#top", '<img src="gone.png">', "", "there is no gone.png"),
    ("#top", '<script src="https://example.org/x.js">', "", "x.js comes from another host"),
    ("#top", '<link href="//example.org/x.css">', "", "x.css comes from another host"),
    ("#top", "", "a { background: url('https://example.org/x') }", "style.css: https://"),
    ("#top", "", '@import "https://example.org/x.css"', "style.css: https://"),
]


def test_what_is_right_and_what_is_wrong(tmp_path: Path) -> None:
    for page in RIGHT:
        assert not found(tmp_path, *page)
    for *page, problem in WRONG:
        (message,) = found(tmp_path, *page)
        assert problem in message


def test_an_empty_site(tmp_path: Path) -> None:
    (message,) = load_tool("check_site").problems(tmp_path)
    assert "no pages" in message
