"""Texts that threads count in parts: files, and calls that fail."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from streamtok import Trainer
from streamtok.training import counting, vocabulary_trainer


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small texts are large: blocks of 2000 bytes, parts from 64."""
    for module in (counting, vocabulary_trainer):
        monkeypatch.setattr(module, "BLOCK", 2000)
    monkeypatch.setattr(counting, "LARGE", 64)
    monkeypatch.setattr(counting, "_LARGE_STR", 64)


def some(letters: str, size: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    return "".join(rng.choices([*letters, " ", " ", "\n", "12", "the", "'s"], k=size))


def alone(*texts: str | bytes, **settings: Any) -> Trainer:
    """One thread, one call for each text."""
    trainer = Trainer(num_threads=1, **settings)
    for text in texts:
        trainer.update(text, final=True)
    return trainer


def same(one: Trainer, other: Trainer) -> bool:
    """Counts in the order of the first occurrences, and how far both are."""
    return (one.bytes_in, one.pending, list(one.piece_counts().items())) == (
        other.bytes_in,
        other.pending,
        list(other.piece_counts().items()),
    )


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("threads", [2, 3])
def test_invalid_bytes_are_found_in_every_part(threads: int) -> None:
    """The error is that of the first invalid byte, with its place in all the text."""
    text = some("a日", 3000).encode()
    for place in range(0, len(text), 211):
        trainer = Trainer(num_threads=threads)
        trainer.update(b"ab ")
        data = text[:place] + b"\xff" + text[place:] + b"\xfe"
        with pytest.raises(UnicodeDecodeError) as caught:
            trainer.update(data)
        single = Trainer(num_threads=1)
        single.update(b"ab ")
        with pytest.raises(UnicodeDecodeError) as expected:
            single.update(data)
        one, other = caught.value, expected.value
        assert (one.start, one.end, one.reason) == (other.start, other.end, other.reason)
        assert one.object == other.object == data[one.start - 3 : one.end - 3]
        assert trainer.bytes_in == 3


@pytest.mark.usefixtures("small")
def test_files_of_every_size(tmp_path: Path) -> None:
    path = tmp_path / "text"
    data = some("a日", 6000).encode()
    seen: list[tuple[int, int]] = []
    for size in (0, 1, 1999, 2000, 2001, 4000, len(data)):
        path.write_bytes(data[:size].decode("utf-8", "ignore").encode().ljust(size, b"."))
        trainer = Trainer(num_threads=3)
        seen.clear()
        trainer.update_file(path, progress=lambda *now: seen.append(now))
        assert same(trainer, alone(path.read_bytes()))
        assert seen == [(min(done, size), size) for done in range(2000, size + 2000, 2000)]


@pytest.mark.usefixtures("small")
def test_files_that_grow_or_shrink(tmp_path: Path) -> None:
    """What is there when it is read is counted, once and in order."""
    path = tmp_path / "text"
    data = some("ab", 6000).encode()

    def grows(done: int, total: int) -> None:
        if done < 3000:
            path.write_bytes(data)

    path.write_bytes(data[:2100])
    shrinks = lambda done, total: os.truncate(path, 2500)  # noqa: E731
    for progress, left in ((grows, len(data)), (shrinks, 2500)):
        trainer = Trainer(num_threads=3)
        trainer.update_file(path, progress=progress)
        assert same(trainer, alone(data[:left]))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = some("ab", 500).encode()
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    trainer = Trainer()
    trainer.update_file(path)
    writer.join()
    assert same(trainer, alone(data))
