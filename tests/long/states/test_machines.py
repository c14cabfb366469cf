"""The machines of this folder for some seeds; `python -m tests.long streams` has no end of them."""

import os
import random

import pytest

from ...cli.test_cli import POSIX
from ..crash import scenarios
from ..steps import run_machine
from . import decoder, stream, trainer
from .pipeline import PipelineMachine

SOME = 10 if os.environ.get("HYPOTHESIS_PROFILE") == "sanitize" else 1
MACHINES = {
    "streams": (stream.StreamMachine, 40), "decoders": (decoder.DecoderMachine, 20),
    "trainers": (trainer.TrainerMachine, 12),
}  # fmt: skip


@pytest.mark.parametrize(("name", "block"), [(name, n) for name in MACHINES for n in range(4)])
def test_steps_in_any_order(name, block):
    machine, seeds = MACHINES[name]
    for seed in range(block, seeds, 4 * SOME):
        try:
            run_machine(machine, seed)
        except AssertionError as error:
            raise AssertionError(f"python -m tests.long {name} --repeat {seed}\n{error}") from error


SCENARIOS = {
    one.name: one for one in scenarios(6000) if one.stdin is None and "large" not in one.name
}


@POSIX
@pytest.mark.parametrize("name", SCENARIOS)
def test_whatever_fails_the_files_are_whole(name):
    """A short walk over every kind of output, after deaths at calls all over the run."""
    machine = PipelineMachine(random.Random(name), SCENARIOS[name])
    at = machine.rng.randrange(4)
    while machine.die(at):
        at = at * 2 + machine.rng.randrange(1, 6)
    assert at > 20
    for _ in range(12):
        machine.step()
    machine.finish()
    assert any(" at call " in str(one) and "not reached" not in str(one) for one in machine.story)
