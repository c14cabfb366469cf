"""The runner of the machines finds hangs, of both kinds, and crashes; being slow is none."""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from . import runner
from .runner import Run


class Bad:
    """A machine that does something bad at its third step."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act
        self.steps = 0

    def step(self) -> str:
        self.steps += 1
        if self.steps == 3:
            self.act()
        return "step"

    def finish(self) -> None:
        pass


def spin() -> None:
    while True:
        pass


def wait() -> None:
    while True:
        time.sleep(60)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def be_slow() -> None:
    time.sleep(1.5)


def run_of(act: Callable[[], None], step_seconds: float) -> Run:
    options = argparse.Namespace(
        machines="", seed=1, seconds=600.0, steps=3, keep_going=False, slowest=0, without="",
        light=False, step_seconds=step_seconds, shrink_seconds=0, repeat=None,
    )  # fmt: skip
    run = Run(options)
    run.makers = {"stream": lambda rng: Bad(act)}
    run.names = ["stream"]
    return run


@pytest.mark.parametrize(
    ("act", "what"),
    [(spin, "hang: a step takes"), (wait, "hang: a step takes"), (die, "crash: SIGKILL")],
)
def test_what_does_not_end_is_found(
    act: Callable[[], None], what: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(runner, "_WAITING", 3)
    run = run_of(act, 0.5)
    assert not run()
    assert [kind for kind in run.kinds if kind.startswith(what)]
    said = capsys.readouterr().out
    assert "--repeat stream:1000000007:" in said


def test_a_step_that_waits_a_little_is_no_hang() -> None:
    assert run_of(be_slow, 0.5)()
