"""A short walk of the adversary of `states/pipeline.py` over every kind of output."""

from __future__ import annotations

import random

import pytest

from .crash import scenarios
from .states.pipeline import PipelineMachine
from .test_cli import POSIX

pytestmark = POSIX
SCENARIOS = {
    one.name: one for one in scenarios(3000) if one.stdin is None and "large" not in one.name
}


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("seed", range(2))
def test_whatever_fails_the_files_are_whole(name: str, seed: int) -> None:
    machine = PipelineMachine(random.Random(f"{name} {seed}"), SCENARIOS[name])
    done = [machine.step() for _ in range(25)]
    machine.finish()
    assert any("at call" in one and "not reached" not in one for one in done)
