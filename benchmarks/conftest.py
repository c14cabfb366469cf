"""Peers, texts and encodings that the benchmarks share; equality is asserted before timing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import corpus, peers
from benchmarks.assets import write_assets

ENCODING = "cl100k_base"
TEXT_BYTES = 300_000


@pytest.fixture(scope="session")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assets")
    write_assets(folder, [ENCODING])
    return folder


@pytest.fixture(scope="session")
def load_peer(assets: Path):
    """Each peer once; one that cannot be loaded is skipped."""
    loaded: dict[str, peers.Peer] = {}

    def load(name: str) -> peers.Peer:
        if name not in loaded:
            kind = peers.by_name(name)
            if not kind.is_installed() or ENCODING not in kind.encodings:
                pytest.skip(f"{name} is not installed or has no {ENCODING}")
            loaded[name] = kind(ENCODING, assets)
        return loaded[name]

    return load


@pytest.fixture(scope="session", params=corpus.NAMES)
def text(request: pytest.FixtureRequest) -> str:
    return corpus.load(request.param, TEXT_BYTES).decode()
