"""The reference: each public name has an example, and each example prints what it shows."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamtok
from streamtok import formats

from ..doc_blocks import DOCS, module_at

OPTIONS = doctest.ELLIPSIS
CLASSES = [
    streamtok.Encoding,
    streamtok.StreamEncoder,
    streamtok.StreamDecoder,
    streamtok.Trainer,
]

# What answers and sources of this package need of a stream; the site leaves them out.
OF_THE_PACKAGE = [
    f"StreamEncoder.{name}"
    for name in ["begin_at", "forget_partial", "matcher", "policy", "setstate_of", "take", "twin"]
]

EXAMPLES: dict[str, str] = module_at(DOCS / "_ext" / "api_docs.py").read_examples()
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if "\n```pycon\n" in path.read_text("utf-8")
)


def public_names() -> Iterator[tuple[str, object]]:
    """Each name, such as "Encoding.encode", and what it names."""
    for name in streamtok.__all__:
        yield name, getattr(streamtok, name)
    for name in formats.__all__:
        yield f"formats.{name}", getattr(formats, name)
    for cls in CLASSES:
        for name in dir(cls):
            if not name.startswith("_") and f"{cls.__name__}.{name}" not in OF_THE_PACKAGE:
                yield f"{cls.__name__}.{name}", getattr(cls, name)


def run(text: str, name: str) -> None:
    """Run the examples in a text, in the current folder."""
    names = {"streamtok": streamtok, "enc": streamtok.get_encoding("gpt2")}
    test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    assert test.examples
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(EXAMPLES[name], name)


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```pycon\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.S | re.M)
    run("\n".join(blocks), page)


def test_each_public_name_has_an_example() -> None:
    errors = (DOCS / "reference" / "errors.md").read_text("utf-8")
    without = [
        name
        for name, value in public_names()
        if name not in EXAMPLES
        and ">>>" not in (inspect.getdoc(value) or "")
        and f"### {name}\n" not in errors
    ]
    assert not without


def test_each_error_has_a_cause_and_a_remedy() -> None:
    parts = re.split(r"^###? ", (DOCS / "reference" / "errors.md").read_text("utf-8"), flags=re.M)
    sections = {part.partition("\n")[0]: part for part in parts[1:]}
    for name in streamtok.__all__:
        if name.endswith(("Error", "Exceeded")) and name != "StreamtokError":
            assert "*Cause.*" in sections[name]
            assert "*Remedy.*" in sections[name]


def test_no_example_is_of_a_name_that_is_gone() -> None:
    for name in EXAMPLES:
        value: object = streamtok
        *path, last = name.split(".")
        for part in path:
            value = getattr(value, part)
        assert hasattr(value, last), name


def test_the_reference_pages_name_everything() -> None:
    text = "".join(path.read_text("utf-8") for path in (DOCS / "reference").glob("*.md"))
    shown = set(re.findall(r"\.\. auto\w+:: (?:streamtok\.)?([\w.]+)", text))
    named = {name for name in streamtok.__all__ if not hasattr(streamtok.errors, name)}
    assert named <= shown
    assert "errors" in shown
    assert {f"formats.{name}" for name in formats.__all__ if name.islower()} - shown == {
        "formats.load"  # the same as `streamtok.load`
    }
