"""Counts that are spilled to the disk: they, and the merges, are those without a limit."""

from __future__ import annotations

import errno
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from streamtok import MemoryLimitExceeded, StateError, Trainer
from streamtok.cli.main import main
from streamtok.training import count_runs

LIMIT = 600_000  # a table of 256 KiB, for 5,120 pre-tokens, and text that waits


def text(size: int = 20_000, seed: int = 5) -> bytes:
    """Many different pre-tokens, few of them often, some of them long."""
    rng = random.Random(seed)
    words = [b"low", b"lower", b"newest", "日本語".encode(), b"q" * 300, b"l" * 40]
    found = []
    for _ in range(size):
        found.append(b"%d" % rng.randrange(1 << 30) if rng.random() < 0.6 else rng.choice(words))
    return b" ".join(found)


def counted(data: bytes, **options: Any) -> Trainer:
    trainer = Trainer("gpt2", **options)
    trainer.update(data, final=True)
    return trainer


def spilled(data: bytes, folder: Path, **options: Any) -> Trainer:
    trainer = counted(data, memory_limit=LIMIT, spill_folder=folder, **options)
    assert trainer.spilled_bytes
    return trainer


def assert_equal(trainer: Trainer, whole: Trainer) -> None:
    assert list(trainer.piece_counts().items()) == list(whole.piece_counts().items())
    assert (trainer.bytes_in, trainer.n_pieces) == (whole.bytes_in, whole.n_pieces)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_the_merges_are_those_of_one_table(tmp_path: Path, num_threads: int) -> None:
    data = text(90_000)
    whole = counted(data)
    trainer = Trainer("gpt2", memory_limit=LIMIT, spill_folder=tmp_path, num_threads=num_threads)
    levels = set()
    for start in range(0, len(data), 70_001):
        trainer.update(data[start : start + 70_001])
        assert trainer.nbytes <= LIMIT
        levels |= {run.level for run in trainer._counting.runs}
    trainer.end_document()
    assert levels >= {0, 1}  # runs of runs, too
    assert_equal(trainer, whole)
    ties: Any = ("raw", "hf", "first")
    for tie in ties:
        assert trainer.merges(500, tie=tie) == whole.merges(500, tie=tie)
    assert trainer.train(300).digest == whole.train(300).digest


def test_states(tmp_path: Path) -> None:
    data = text()
    whole, trainer = counted(data), spilled(data, tmp_path)
    assert_equal(pickle.loads(pickle.dumps(trainer)), whole)
    path = tmp_path / "counts.npz"
    trainer.save_counts(path)
    assert_equal(Trainer.load_counts(path), whole)
    again = Trainer.load_counts(path, memory_limit=LIMIT, spill_folder=tmp_path)
    assert again.spilled_bytes
    assert_equal(again, whole)
    with pytest.raises(MemoryLimitExceeded):
        Trainer.load_counts(path, memory_limit=LIMIT)


@pytest.mark.parametrize("mine", ["spilled", "limited", "plain"])
@pytest.mark.parametrize("other", ["spilled", "plain"])
def test_merge(tmp_path: Path, mine: str, other: str) -> None:
    first, second = text(12_000, 1), text(12_000, 2)
    limited: dict[str, Any] = {"memory_limit": LIMIT, "spill_folder": tmp_path}
    trainer = Trainer("gpt2", **({} if mine == "plain" else limited))
    begun = b"" if mine == "limited" else first
    trainer.update(begun + b" open")
    more = counted(second, **(limited if other == "spilled" else {}))
    before = more.piece_counts()
    trainer.merge(more)
    assert more.piece_counts() == before
    trainer.update(first, final=True)
    whole = counted(begun + b" open")
    whole.merge(counted(second))
    whole.update(first, final=True)
    assert_equal(trainer, whole)


class Faulty:
    """Files whose n-th write, and all after it, raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: BaseException, writes: int):
        self.left, self.error, self.raised = writes, error, 0
        self.write = count_runs._write_all
        monkeypatch.setattr(count_runs, "_write_all", self)

    def __call__(self, file: Any, content: bytes) -> None:
        if self.left == 0:
            self.write(file, content[: len(content) // 2])
            self.raised += 1
            raise self.error
        self.left -= 1
        self.write(file, content)


@pytest.mark.parametrize("writes", [0, 700, 1500, 3000, 7500])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    data = text(90_000)
    trainer = Trainer("gpt2", memory_limit=LIMIT, spill_folder=tmp_path, num_threads=1)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    disk = Faulty(monkeypatch, full, writes)
    with pytest.raises(MemoryLimitExceeded, match="No space left on device") as caught:
        trainer.update(data)
    assert caught.value.__cause__ is full
    assert caught.value.bytes_in == trainer.bytes_in < len(data)
    assert disk.raised
    read = trainer.bytes_in
    so_far = Trainer("gpt2")
    so_far.update(data[:read])
    assert trainer._counting.pending >= so_far.pending
    disk.left = -1  # there is room again
    trainer.update(data[read:], final=True)
    assert_equal(trainer, counted(data))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("writes", [1, 900, 2000])
def test_an_interrupt_while_a_run_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    data = text(30_000)
    trainer = Trainer("gpt2", memory_limit=LIMIT, spill_folder=tmp_path, num_threads=1)
    keyboard = Faulty(monkeypatch, KeyboardInterrupt(), writes)
    with pytest.raises(KeyboardInterrupt):
        trainer.update(data)
    keyboard.left = -1
    trainer.update(data[trainer.bytes_in :], final=True)
    assert_equal(trainer, counted(data))
    assert os.listdir(tmp_path) == []


def test_a_merge_that_has_no_room_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, more = spilled(text(), tmp_path), counted(text(seed=8))
    disk = Faulty(monkeypatch, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 0)
    with pytest.raises(MemoryLimitExceeded, match="No space left"):
        trainer.merge(more)
    disk.left = -1
    whole = counted(text())
    assert_equal(trainer, whole)
    trainer.merge(more)
    whole.merge(more)
    assert_equal(trainer, whole)


@pytest.mark.parametrize("damage", ["changed", "shortened"])
def test_a_damaged_run(tmp_path: Path, damage: str) -> None:
    trainer = spilled(text(), tmp_path)
    file: Any = trainer._counting.runs[0]._file
    if damage == "changed":
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    else:
        file.truncate(1000)
    for use in (trainer.piece_counts, lambda: trainer.train(300)):
        with pytest.raises(StateError, match="differ from the counts that were written"):
            use()


def test_files_end_with_the_trainer(tmp_path: Path) -> None:
    trainer = spilled(text(), tmp_path)
    files = [run._file for run in trainer._counting.runs]
    assert os.listdir(tmp_path) == [] or os.name == "nt"  # nobody else sees them
    assert not any(file.closed for file in files)
    del trainer
    assert all(file.closed for file in files)


def test_arguments(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError):
        Trainer("gpt2", spill_folder=tmp_path / "none")
    with pytest.raises(ValueError, match="only one can make room"):
        Trainer("gpt2", spill_folder=tmp_path, prune_singletons=True)
    with pytest.raises(MemoryLimitExceeded):  # there is nothing to spill
        Trainer("gpt2", memory_limit=1, spill_folder=tmp_path).update("a")


def test_the_command_line(tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "in.txt"
    source.write_bytes(text())
    args = ["train", str(source), "--vocab-size", "400", "--pattern", "gpt2"]
    one, two, three = (tmp_path / f"{name}.tiktoken" for name in ("one", "two", "three"))
    assert main([*args, "-q", "-o", str(one)]) == 0
    folder = tmp_path / "folder"
    folder.mkdir()
    limit = ["--memory-limit", str(LIMIT), "--spill-folder", str(folder)]
    assert main([*args, "-o", str(two), *limit]) == 0
    assert "were spilled" in capsys.readouterr().err
    assert main([*args, "-q", "-o", str(three), *limit, "--workers", "2"]) == 0
    assert one.read_bytes() == two.read_bytes() == three.read_bytes()
    assert os.listdir(folder) == []
    for wrong, message in (
        (limit[2:], "--spill-folder needs --memory-limit"),
        ([*limit, "--prune"], "--prune cannot be used with --spill-folder"),
        ([*limit[:2], "--workers", "2"], "--memory-limit cannot be used with --workers"),
    ):
        assert main([*args, "-o", str(tmp_path / "x"), *wrong]) == 2
        assert message in capsys.readouterr().err
