"""The texts of the pytest benchmarks."""

from __future__ import annotations

import pytest

from benchmarks import corpus

ENCODING = "cl100k_base"
TEXT_BYTES = 300_000


@pytest.fixture(scope="session", params=corpus.NAMES)
def text(request: pytest.FixtureRequest) -> str:
    return corpus.load(request.param, TEXT_BYTES).decode()
