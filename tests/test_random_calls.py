"""A few rounds of `python -m tests.long calls`, which runs for longer under sanitizers."""

from __future__ import annotations

import pytest

from .long.calls.rounds import one_round
from .long.calls.subjects import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_all_calls_give_the_same_ids(family: str) -> None:
    counts = one_round(len(family), family, most=3000)
    assert counts["answers"] > 20
