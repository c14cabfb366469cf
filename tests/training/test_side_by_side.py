"""Texts that threads count in parts: str of every width, documents, files, and calls that fail."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from streamtok import Trainer
from streamtok.parallel import threads as thread_module
from streamtok.parallel.threads import map_in_threads
from streamtok.training import counting, part_counters, vocabulary_trainer

WIDTHS = ["abc", "aé", "a日é", "a\U0001f600日"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small texts are large: blocks of 2000 bytes, parts from 64."""
    for module in (counting, vocabulary_trainer):
        monkeypatch.setattr(module, "BLOCK", 2000)
    monkeypatch.setattr(part_counters, "LARGE", 64)
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
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("letters", WIDTHS)
def test_str_of_every_width(letters: str, threads: int) -> None:
    for seed, size in enumerate([63, 64, 65, 700, 999, 1000, 1001, 5000]):
        text = some(letters, size, seed)
        trainer, other = Trainer(num_threads=threads), Trainer(num_threads=1)
        for final in (False, True):  # what one text leaves open, the next one ends
            trainer.update(text, final)
            other.update(text.encode(), final)
            assert same(trainer, other), (seed, final)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("threads", [2, 3])
def test_invalid_bytes_are_found_in_every_part(threads: int) -> None:
    """The error is that of the first invalid byte, with its place in all the text."""
    text = some("a日", 3000).encode()
    for place in range(0, len(text), 97):
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

    def shrinks(done: int, total: int) -> None:
        os.truncate(path, 2500)

    path.write_bytes(data[:2100])
    trainer = Trainer(num_threads=3)
    trainer.update_file(path, progress=grows)
    assert same(trainer, alone(data))
    trainer = Trainer(num_threads=3)
    trainer.update_file(path, progress=shrinks)
    assert same(trainer, alone(data[:2500]))


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


@pytest.mark.usefixtures("small")
def test_without_threads_all_is_counted_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(work: object, arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    text = some("a日", 5000)
    monkeypatch.setattr(thread_module, "start_new_thread", refuse)
    trainer = Trainer(num_threads=4)
    trainer.update(text, final=True)
    trainer.update(text.encode(), final=True)
    trainer.update_documents([text[i : i + 50] for i in range(0, 5000, 50)])
    assert same(trainer, alone(text, text, *(text[i : i + 50] for i in range(0, 5000, 50))))


def test_map_in_threads() -> None:
    here = threading.get_ident()
    met = threading.Barrier(3, timeout=60)

    def meet(i: int) -> tuple[int, bool]:
        met.wait()  # all three are in a thread of their own
        return i, threading.get_ident() == here

    assert map_in_threads(meet, [0, 1, 2], 3) == [(0, True), (1, False), (2, False)]

    def fail(i: int) -> None:
        met.wait()
        if i:
            raise ValueError(f"call {i}")

    with pytest.raises(ValueError, match="call 1"):
        map_in_threads(fail, [0, 1, 2], 3)
    with pytest.raises(KeyboardInterrupt):
        map_in_threads(lambda i: (_ for _ in ()).throw(KeyboardInterrupt), [0, 1], 2)
