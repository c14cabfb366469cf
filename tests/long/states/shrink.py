"""Which steps of a machine are enough for its difference."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Spec(NamedTuple):
    """A machine, its seed, and which of its steps are done: `stream:17:0-4,9`."""

    machine: str
    seed: int
    steps: Sequence[int]
    is_given: bool = True  # whether the steps were named; else they are all

    @classmethod
    def parse(cls, text: str) -> Spec:
        """The Spec that is written so. Raises ValueError."""
        machine, seed, *rest = text.split(":")
        if not rest:
            return cls(machine, int(seed), (), is_given=False)
        steps: list[int] = []
        for part in rest[0].split(",") if rest[0] else ():
            first, _, last = part.partition("-")
            steps += range(int(first), int(last or first) + 1)
        return cls(machine, int(seed), steps)

    def __str__(self) -> str:
        parts: list[list[int]] = []
        for step in self.steps:
            if parts and parts[-1][1] == step - 1:
                parts[-1][1] = step
            else:
                parts.append([step, step])
        steps = ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in parts)
        return f"{self.machine}:{self.seed}" + f":{steps}" * self.is_given


def shrunk(spec: Spec, fails: Callable[[Spec], bool], seconds: float = 60) -> Spec:
    """A Spec with few of the steps that still fails; `spec` itself if it does not fail again."""
    deadline = time.monotonic() + seconds
    steps = list(spec.steps)
    if not fails(spec):
        return spec
    size = max(1, len(steps) // 2)
    while time.monotonic() < deadline:
        start, is_smaller = 0, False
        while start < len(steps) and time.monotonic() < deadline:
            fewer = steps[:start] + steps[start + size :]
            if fails(spec._replace(steps=fewer)):
                steps, is_smaller = fewer, True
            else:
                start += size
        if size == 1 and not is_smaller:
            break
        size = max(1, size // 2)
    return spec._replace(steps=steps)
