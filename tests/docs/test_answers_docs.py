"""Runs the examples of docs/answers.md."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "answers.md"


def test_examples() -> None:
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(
        PAGE.read_text("utf-8").replace("```", ""), {}, PAGE.name, str(PAGE), 0
    )
    runner = doctest.DocTestRunner()
    runner.run(test, out=said.append)
    assert runner.tries > 15
    assert not runner.failures, "".join(said)
