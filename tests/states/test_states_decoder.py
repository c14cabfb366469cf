"""The machine of `states/decoder.py`: hypothesis chooses its steps, and so do some seeds."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from .decoder import RULES, DecoderMachine


class Steps(RuleBasedStateMachine):
    machine: DecoderMachine

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.machine = DecoderMachine(random.Random(seed))

    @rule(name=st.sampled_from(sorted(set(RULES))), seed=st.integers(0, 2**32))
    def act(self, name: str, seed: int) -> None:
        self.machine.rng = random.Random(seed)
        getattr(self.machine, name)()

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "machine"):
            self.machine.check()

    def teardown(self) -> None:
        if hasattr(self, "machine"):
            self.machine.finish()


TestSteps = Steps.TestCase
TestSteps.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("seed", range(60))
def test_seeds(seed: int) -> None:
    machine = DecoderMachine(random.Random(seed))
    for _ in range(50):
        machine.step()
    machine.finish()
