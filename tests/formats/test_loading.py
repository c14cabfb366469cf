"""Files of vocabularies are read whole, within a limit, and take no more memory than they have."""

from __future__ import annotations

import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from streamtok import VocabularyError
from streamtok.formats import loading


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
def test_memory_is_that_of_the_file(tmp_path: Path, size: int) -> None:
    path = tmp_path / "vocabulary"
    path.write_bytes(b"x" * size)
    tracemalloc.start()
    try:
        assert len(loading.read_bytes(path)) == size
        assert tracemalloc.get_traced_memory()[1] < size + (1 << 18)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("more", [0, 1])
def test_the_limit(tmp_path: Path, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MAX_FILE_BYTES", 1 << 20)
    path = tmp_path / "vocabulary"
    path.write_bytes(b"x" * ((1 << 20) + more))
    if not more:
        assert len(loading.read_bytes(path)) == 1 << 20
        return
    with pytest.raises(VocabularyError, match=r"vocabulary: a .* not have more than 1 MiB"):
        loading.read_bytes(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("size", [0, 70_000, 3_000_000, 3_000_001])
def test_a_pipe(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows how many bytes come."""
    monkeypatch.setattr(loading, "MAX_FILE_BYTES", 3_000_000)
    monkeypatch.setattr(loading, "_BLOCK", 1 << 16)
    path, data = tmp_path / "pipe", os.urandom(size)
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb") as file:
            file.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        if size > 3_000_000:
            with pytest.raises(VocabularyError, match="pipe: a vocabulary file must not have"):
                loading.read_bytes(path)
        else:
            assert loading.read_bytes(path) == data
    finally:
        thread.join()
