"""Cases that are made of steps: a machine that does them, and which of them are enough.

hypothesis.stateful cannot carry this: a crash or a hang of the core would end the process that has
to shrink it.
"""

from __future__ import annotations

import collections
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

MOST = 400


class Machine:
    """What a case does: at each step one of its rules, which are methods.

    rules: how often each is done. settings: what a difference tells, with the end of the story.
    """

    def __init__(self, rng: random.Random, rules: dict[str, float]) -> None:
        self.rng = rng
        self.rules = rules
        self.settings = ""
        self.story: collections.deque[str] = collections.deque(maxlen=30)

    def state(self) -> Any:
        """What a call that fails must leave as it was."""
        raise NotImplementedError

    def step(self) -> str:
        """Do one thing; what it was."""
        [rule] = self.rng.choices(list(self.rules), list(self.rules.values()))
        with self.told():
            getattr(self, rule)()
        return rule

    def finish(self) -> None:
        """Compare at the end."""

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """AssertionError, with what was done before, for whatever is raised."""
        try:
            yield
        except Exception as error:
            what = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            lines = [f"{what}{error}", self.settings, *self.story]
            raise AssertionError("\n  ".join(lines)) from error

    def call(self, call: str, do: Callable[[], Any], *errors: type[BaseException]) -> Any:
        """What it gives; with errors, it must raise one of them, which is given."""
        self.story.append(call)
        try:
            result = do()
        except errors as error:
            return error
        assert not errors, f"{call} gave {result!r} and should have raised one of {errors}"
        return result

    def refused(self, call: str, do: Callable[[], Any], *errors: type[BaseException]) -> Any:
        """The error that it raises; nothing may be changed by it."""
        before = self.state()
        error = self.call(call, do, *errors)
        assert self.state() == before, f"{call} raised {error!r}, and changed something"
        return error


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
