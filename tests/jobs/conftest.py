"""Where jobs are: in a folder, or in a store in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest


@pytest.fixture
def memory() -> Iterator[str]:
    """The URL of an empty folder in memory."""
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    yield "memory:///folder"
    store.store.clear()
    store.pseudo_dirs[:] = [""]


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty folder of this machine, or in memory."""
    return str(tmp_path) if request.param == "folder" else request.getfixturevalue("memory")
