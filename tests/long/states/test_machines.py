"""The machines of this folder for some seeds; `python -m tests.long streams` has no end of them."""

from __future__ import annotations

import os

import pytest

from ..steps import run_machine
from . import decoder, stream, trainer

SOME = 10 if os.environ.get("HYPOTHESIS_PROFILE") == "sanitize" else 1
MACHINES = {
    "streams": (stream.StreamMachine, 80), "decoders": (decoder.DecoderMachine, 40),
    "trainers": (trainer.TrainerMachine, 25),
}  # fmt: skip


@pytest.mark.parametrize(("name", "block"), [(name, n) for name in MACHINES for n in range(4)])
def test_steps_in_any_order(name: str, block: int) -> None:
    machine, seeds = MACHINES[name]
    for seed in range(block, seeds, 4 * SOME):
        try:
            run_machine(machine, seed)
        except AssertionError as error:
            raise AssertionError(f"python -m tests.long {name} --repeat {seed}\n{error}") from error
