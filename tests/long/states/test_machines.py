"""The machines of this folder: hypothesis chooses their steps, and so do some seeds.

`python -m tests.long.fuzz --states` runs the same machines for as long as you like.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from . import decoder, stream, trainer, whole
from .runner import run_machine

IS_SLOW_BUILD = os.environ.get("HYPOTHESIS_PROFILE") == "sanitize"
SEEDS = st.integers(0, 2**32)
BLOCK = 10  # seeds of a test


class Case(NamedTuple):
    """make: a machine. rules: what it can do, by `follow`. seeds: of so many steps each."""

    make: Callable[[random.Random], Any]
    rules: list[Any]
    follow: Callable[[Any, Any], object]
    examples: int
    seeds: int
    steps: int


def act(machine: Any, name: str) -> None:
    getattr(machine, name)()


def act_and_check(machine: Any, name: str) -> None:
    act(machine, name)
    machine.check()


def act_on_parts(machine: Any, name: str) -> None:
    with machine.small_parts():
        act(machine, name)


CASES = {
    "stream": Case(
        stream.StreamMachine,
        [name for name in stream.NAMES if name != "elsewhere"],
        lambda machine, name: machine.run(name),
        40 if IS_SLOW_BUILD else 100,
        30 if IS_SLOW_BUILD else 300,
        60,
    ),
    "decoder": Case(decoder.DecoderMachine, sorted(set(decoder.RULES)), act_and_check, 60, 60, 50),
    "trainer": Case(
        trainer.TrainerMachine,
        trainer.RULES,
        lambda machine, rule: machine.follow(rule, machine.rng),
        40,
        40,
        60,
    ),
    "whole": Case(whole.WholeMachine, sorted(set(whole.RULES)), act_on_parts, 20, 30, 20),
}


@pytest.mark.parametrize("name", CASES)
def test_any_order(name: str) -> None:
    case = CASES[name]

    class Steps(RuleBasedStateMachine):
        machine: Any = None

        @initialize(seed=SEEDS)
        def begin(self, seed: int) -> None:
            self.machine = case.make(random.Random(seed))

        @rule(name=st.sampled_from(case.rules), seed=SEEDS)
        def act(self, name: Any, seed: int) -> None:
            self.machine.rng.seed(seed)
            case.follow(self.machine, name)

        def teardown(self) -> None:
            if self.machine is not None:
                self.machine.finish()

    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Steps,
        settings=settings(
            max_examples=case.examples,
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize(
    ("name", "block"),
    [(name, block) for name, case in CASES.items() for block in range(case.seeds // BLOCK)],
)
def test_seeds(name: str, block: int) -> None:
    case = CASES[name]
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        for _ in run_machine(case.make, seed, range(case.steps), lambda step: None):
            pass
