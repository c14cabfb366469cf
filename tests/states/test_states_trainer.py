"""Trainer as a state machine: whatever is called, in whatever order, and whatever fails."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from .trainer import RULES, TrainerMachine


class States(RuleBasedStateMachine):
    """The rules of TrainerMachine; hypothesis draws and shrinks what they draw."""

    machine: TrainerMachine | None = None

    @initialize(rng=st.randoms(use_true_random=False))
    def begin(self, rng: random.Random) -> None:
        self.machine = TrainerMachine(rng)

    @rule(follow=st.sampled_from(RULES), rng=st.randoms(use_true_random=False))
    def step(self, follow, rng: random.Random) -> None:
        assert self.machine is not None
        self.machine.follow(follow, rng)

    def teardown(self) -> None:
        if self.machine is not None:
            self.machine.finish()


States.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestStates = States.TestCase


@pytest.mark.parametrize("seed", range(40))
def test_seeds(seed):
    machine = TrainerMachine(random.Random(seed))
    for _ in range(60):
        machine.step()
    machine.finish()
    assert machine.calls
