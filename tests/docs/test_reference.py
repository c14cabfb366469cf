"""The reference: each public name has an example; each example, in docstrings too, is run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamtok
from streamtok import formats

from ..doc_blocks import DOCS, module_at

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(streamtok.__path__, "streamtok.")
    if not module.name.endswith("__main__")
)
NAMES = {"streamtok": streamtok, "enc": streamtok.get_encoding("gpt2")}
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


def run(*tests: doctest.DocTest) -> None:
    """Run examples, in the current folder, and compare what they print."""
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in tests:
        assert test.examples
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


def run_text(text: str, name: str) -> None:
    run(doctest.DocTestParser().get_doctest(text, dict(NAMES), name, name, 0))


def examples(module: str) -> list[doctest.DocTest]:
    """The docstrings of a module that have examples. `NAMES` are defined in each."""
    found = doctest.DocTestFinder().find(importlib.import_module(module), extraglobs=dict(NAMES))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module: str) -> None:
    run(*examples(module))


def test_docstrings_are_found() -> None:
    """That nothing is compared would also be a success."""
    with_examples = [module for module in MODULES if examples(module)]
    assert {"streamtok.encoding", "streamtok.chunker"} <= set(with_examples)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_text(EXAMPLES[name], name)


@pytest.mark.parametrize("page", PAGES)
def test_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```pycon\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.S | re.M)
    run_text("\n".join(blocks), page)


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
