"""The runner of the machines finds hangs, of both kinds, and crashes; being slow is none."""

from __future__ import annotations

import argparse
import os
import random
import signal
import time
from typing import Any

import pytest

from . import runner
from .runner import Run


class Bad:
    """A machine that does `bad` at its third step."""

    def __init__(self, rng: random.Random) -> None:
        self.steps = 0

    def bad(self) -> None:
        raise NotImplementedError

    def step(self) -> str:
        self.steps += 1
        if self.steps == 3:
            self.bad()
        return "step"

    def finish(self) -> None:
        pass


class Spins(Bad):
    def bad(self) -> None:
        while True:
            pass


class Waits(Bad):
    def bad(self) -> None:
        while True:
            time.sleep(60)


class Dies(Bad):
    def bad(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Slow(Bad):
    def bad(self) -> None:
        time.sleep(1.5)


def run_of(machine: type[Bad], step_seconds: float, **changes: Any) -> Run:
    options = argparse.Namespace(
        machines="", seed=1, seconds=600.0, steps=3, keep_going=False, slowest=0, without="",
        light=False, step_seconds=step_seconds, shrink_seconds=0, repeat=None,
    )  # fmt: skip
    vars(options).update(changes)
    run = Run(options)
    run.makers = {"stream": machine}
    run.names = ["stream"]
    return run


@pytest.mark.parametrize(
    ("machine", "what"),
    [(Spins, "hang: a step takes"), (Waits, "hang: a step takes"), (Dies, "crash: SIGKILL")],
)
def test_what_does_not_end_is_found(
    machine: type[Bad], what: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(runner, "_WAITING", 3)
    run = run_of(machine, 1)
    assert not run()
    assert [kind for kind in run.kinds if kind.startswith(what)]
    said = capsys.readouterr().out
    assert "--repeat stream:1000000007:" in said


def test_a_step_that_waits_a_little_is_no_hang() -> None:
    assert run_of(Slow, 1)()
