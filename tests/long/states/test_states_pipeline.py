"""A short walk of the adversary of `states/pipeline.py` over every kind of output."""

from __future__ import annotations

import random

import pytest

from ...cli.test_cli import POSIX
from ..crash import scenarios
from .pipeline import PipelineMachine

pytestmark = POSIX
SCENARIOS = {
    one.name: one for one in scenarios(3000) if one.stdin is None and "large" not in one.name
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_whatever_fails_the_files_are_whole(name: str) -> None:
    machine = PipelineMachine(random.Random(name), SCENARIOS[name])
    for _ in range(12):
        machine.step()
    machine.finish()
    assert any("at call" in one and "not reached" not in one for one in machine.log)
