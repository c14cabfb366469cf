"""Cases that are made of steps: a machine that does them, and which of them are enough.

hypothesis.stateful cannot carry this: a crash or a hang of the core would end the process that has
to shrink it.
"""

from __future__ import annotations

import collections
import random
import time
from collections.abc import Callable, Sequence
from typing import Protocol

MOST = 400


class Machine(Protocol):
    """What a case does. `step` returns what it was; AssertionError: a difference."""

    def step(self) -> str: ...
    def finish(self) -> None: ...


def length(seed: int) -> int:
    """How many steps the case of this seed has."""
    return min(5 + int(random.Random(seed ^ 0x5EED).expovariate(1 / 60)), MOST)


def run_machine(
    machine: Callable[[random.Random], Machine], seed: int, steps: Sequence[int] | None = None
) -> collections.Counter[str]:
    """Do these steps, or all, and the end; how often what was done.

    Each step draws from a generator of its own, so that it stays what it is if others are left out.
    """
    rng = random.Random(seed)
    made = machine(rng)
    done: collections.Counter[str] = collections.Counter()
    for step in range(length(seed)) if steps is None else steps:
        rng.seed(seed * 1_000_003 + step)
        done[made.step()] += 1
    rng.seed(seed * 1_000_003 - 1)
    made.finish()
    return done


def parsed(text: str) -> list[int]:
    """The steps that are written as `0-4,9`."""
    steps: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        steps += range(int(first), int(last or first) + 1)
    return steps


def joined(steps: Sequence[int]) -> str:
    """The reverse of `parsed`."""
    parts: list[list[int]] = []
    for step in steps:
        if parts and parts[-1][1] == step - 1:
            parts[-1][1] = step
        else:
            parts.append([step, step])
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in parts)


def shrunk(
    steps: Sequence[int], fails: Callable[[Sequence[int]], bool], seconds: float
) -> Sequence[int]:
    """Fewer steps that still fail; all of them if they do not fail again."""
    deadline = time.monotonic() + seconds
    if not fails(steps):
        return steps
    steps, size = list(steps), max(1, len(steps) // 2)
    while time.monotonic() < deadline:
        start, is_smaller = 0, False
        while start < len(steps) and time.monotonic() < deadline:
            fewer = steps[:start] + steps[start + size :]
            if fails(fewer):
                steps, is_smaller = fewer, True
            else:
                start += size
        if size == 1 and not is_smaller:
            break
        size = max(1, size // 2)
    return steps
