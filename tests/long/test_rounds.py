"""A few rounds of the long programs that need seconds; others are run beside what they test."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable

import pytest

from . import cuts, encoded_files, prompts
from .calls import rounds
from .calls.subjects import FAMILIES

ROUNDS: dict[str, Callable[[], Counter[str]]] = {
    f"calls, {family}, {seed}": functools.partial(rounds.one_round, seed, family, 3000)
    for family in FAMILIES
    for seed in (len(family), 100)
}
ROUNDS |= {f"cuts, {n}": functools.partial(cuts.one_round, n) for n in range(4)}
ROUNDS |= {f"prompts, {n}": functools.partial(prompts.one_round, n) for n in range(6)}
ROUNDS |= {f"files, {n}": functools.partial(encoded_files.one_round, n) for n in range(10)}


@pytest.mark.parametrize("name", ROUNDS)
def test_round(name):
    counts = ROUNDS[name]()
    assert not name.startswith("calls") or counts["answers"] > 20
