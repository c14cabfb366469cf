"""The machine of `states/whole.py`: hypothesis chooses its steps, and so do some seeds."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from .whole import RULES, WholeMachine


class Steps(RuleBasedStateMachine):
    machine: WholeMachine

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.machine = WholeMachine(random.Random(seed))

    @rule(name=st.sampled_from(sorted(set(RULES))), seed=st.integers(0, 2**32))
    def act(self, name: str, seed: int) -> None:
        self.machine.rng = random.Random(seed)
        with self.machine.small_parts():
            getattr(self.machine, name)()

    def teardown(self) -> None:
        if hasattr(self, "machine"):
            self.machine.finish()


TestSteps = Steps.TestCase
TestSteps.settings = settings(
    max_examples=20,
    stateful_step_count=20,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("seed", range(30))
def test_seeds(seed: int) -> None:
    machine = WholeMachine(random.Random(seed))
    for _ in range(20):
        machine.step()
    machine.finish()
