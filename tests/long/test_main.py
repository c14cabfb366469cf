"""What ends a long program is told with the command that repeats it."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest

from . import __main__ as program
from .steps import Machine, joined, parsed, run_machine, shrunk


def said(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["tests.long", *arguments])
    code = program.main()
    return code, capsys.readouterr().out


def test_rounds(monkeypatch, capsys):
    code, out = said(monkeypatch, capsys, "cuts", "--rounds", "2", "--seed", "3")
    assert code == 0
    assert " cuts " in out
    assert "2 rounds in " in out


@pytest.mark.parametrize(("code", "how"), [(-9, "SIGKILL"), (1, "exit code 1")])
def test_a_crash_and_a_difference(monkeypatch, capsys, code, how):
    def lines_of(arguments):
        yield from ["round 17\n", "DIFFERENCE: of something\n"]
        steps = [parsed(one.partition("=")[2]) for one in arguments if one.startswith("--steps=")]
        yield code if not steps or 3 in steps[0] else 0

    monkeypatch.setattr(program, "lines_of", lines_of)
    found, out = said(monkeypatch, capsys, "streams")
    assert found == 1
    assert f"({how}): python -m tests.long streams --repeat 17\n" in out
    assert out.endswith("python -m tests.long streams --repeat 17 --steps 3\n")


class Third(Machine):
    """A machine whose third step of a kind is wrong."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, {"good": 4, "bad": 1})
        self.n_bad = 0

    def good(self) -> None:
        pass

    def bad(self) -> None:
        self.n_bad += 1
        assert self.n_bad < 3, "three"


def test_few_steps_are_enough(monkeypatch, capsys):
    def fails(steps):
        try:
            run_machine(Third, 5, steps)
        except AssertionError:
            return True
        return False

    few = shrunk(range(60), fails, 60)
    assert len(few) == 3
    assert fails(few)
    assert parsed(joined(few)) == few
    assert joined([0, 1, 2, 7]) == "0-2,7"
