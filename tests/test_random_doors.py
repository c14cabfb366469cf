"""A few rounds of `tests.long.doors`, which is run for longer under sanitizers."""

from __future__ import annotations

import pytest

from .long.doors.__main__ import one_round
from .long.doors.subjects import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_all_calls_give_the_same_ids(family: str) -> None:
    counts = one_round(len(family), [1, 2, 4], family, most=3000)
    assert counts["answers"] > 20
