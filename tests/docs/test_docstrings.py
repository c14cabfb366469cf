"""The examples in docstrings: each is run, and what it prints is compared."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import streamtok

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(streamtok.__path__, "streamtok.")
    if not module.name.endswith("__main__")
)
NAMES = {"streamtok": streamtok, "enc": streamtok.get_encoding("gpt2")}


def examples(module: str) -> list[doctest.DocTest]:
    """The docstrings of a module that have examples. `NAMES` are defined in each."""
    found = doctest.DocTestFinder().find(importlib.import_module(module), extraglobs=dict(NAMES))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in examples(module):
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


def test_examples_are_found() -> None:
    """That nothing is compared would also be a success."""
    with_examples = [module for module in MODULES if examples(module)]
    assert {"streamtok.encoding", "streamtok.chunker"} <= set(with_examples)
