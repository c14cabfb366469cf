"""The command line of training, in process."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamtok
from streamtok import Trainer, merging, trainer
from streamtok.commands import train

from .training import counted, numbers, some_text, tokens_of


def run_cli(*args: object) -> int:
    from streamtok.cli import main

    return main(["train", *map(str, args)])


def texts_of_files() -> list[str]:
    whole = "".join(some_text())
    return [whole[start : start + 9000] for start in range(0, 54_000, 9000)]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for i, text in enumerate(texts_of_files()):
        paths.append(tmp_path / f"{i}.txt")
        paths[-1].write_text(text, "utf-8", newline="")
    return paths


def test_command(files, tmp_path, capsys):
    out = tmp_path / "mine.tiktoken"
    assert run_cli(*files, "--vocab-size", 700, "-o", out, "--special", "<|end|>") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "700 tokens in" in said.err
    assert "'<|end|>' has id 699" in said.err
    expected = streamtok.Encoding.train_from_iterator(texts_of_files(), 699)
    assert streamtok.vocabulary.load_tiktoken(out).to_ranks() == expected._mergeable_ranks
    options = "--pattern", "gpt2", "--tie", "hf", "--min-frequency", 4, "--threads", 1, "-q"
    assert run_cli(*files, "--vocab-size", 400, "-o", out, *options) == 0
    trainer = counted(texts_of_files(), "gpt2")
    tokens = list(streamtok.vocabulary.load_tiktoken(out).to_ranks())
    assert tokens == tokens_of(trainer.merges(400, tie="hf", min_frequency=4))
    assert capsys.readouterr().err == ""


def test_command_on_standard_input(files):
    import subprocess
    import sys

    out = files[0].with_suffix(".tiktoken")
    command = [sys.executable, "-m", "streamtok", "train", "--vocab-size", "300", "-o", str(out)]
    with open(files[0], "rb") as text:
        subprocess.run(command, stdin=text, check=True, capture_output=True)
    tokens = list(streamtok.vocabulary.load_tiktoken(out).to_ranks())
    assert tokens == tokens_of(counted(texts_of_files()[:1]).merges(300))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("many").write_bytes(numbers(60_000))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--vocab-size", 200], "there are 256 bytes"),
        (["--vocab-size", 256, "--special", "x"], "there are 256 bytes"),
        (["--vocab-size", 300, "--special", "x", "--special", "x"], "special tokens"),
        (["--vocab-size", 300, "--pattern", "("], "pattern"),
        (["--vocab-size", 300, "--pattern", "(?<=a)b"], "look-behind"),
        (["--vocab-size", 300, "--memory-limit", "1k"], "memory_limit"),
        (["--vocab-size", 300, "--save-counts", "c", "--errors", "replace"], "--save-counts"),
    ],
)
def test_command_refuses(args, message, capsys):
    assert run_cli("many", "-o", "out", *args) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("streamtok: error: ")
    assert said.count("\n") == 1
    assert not Path("out").exists()


def test_command_refuses_files(files, tmp_path, capsys):
    options = "--vocab-size", 300, "-o", tmp_path / "out"
    assert run_cli(tmp_path / "none", *options) == 1
    assert run_cli(*files, "--vocab-size", 300, "-o", tmp_path / "none" / "out") == 1
    assert run_cli(*files, "--vocab-size", 300, "-o", tmp_path) == 1
    files[2].write_bytes(b"good \xff")
    assert run_cli(files[2], *options) == 1
    assert "invalid start byte at byte 5" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_command_goes_on_where_it_stopped(files, tmp_path, capsys, monkeypatch):
    out, counts = tmp_path / "out", tmp_path / "counts.npz"
    monkeypatch.setattr("streamtok.commands.train._BLOCK", 1000)
    update = Trainer.update
    left = [0]  # calls before Ctrl-C

    def interrupted(self, chunk, final=False):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        update(self, chunk, final)

    monkeypatch.setattr(Trainer, "update", interrupted)
    options = "--vocab-size", 700, "-o", out, "--save-counts", counts, "--tie", "first"
    for calls in (4, 25, 20):
        left[0] = calls
        assert run_cli(*files, *options) == 130
        assert counts.exists()
        assert not out.exists()
    assert run_cli(files[0], *options) == 1  # the one that is counted in part must be named
    assert "counted in part" in capsys.readouterr().err
    assert run_cli(*files, *options) == 0
    expected = tokens_of(counted(texts_of_files()).merges(700, tie="first"))
    assert list(streamtok.vocabulary.load_tiktoken(out).to_ranks()) == expected
    assert run_cli(*files, *options) == 0  # nothing is counted twice
    assert list(streamtok.vocabulary.load_tiktoken(out).to_ranks()) == expected
    assert run_cli(*files, *options, "--pattern", "gpt2") == 1
    files[0].write_text("another text", "utf-8")
    assert run_cli(*files, *options) == 1
    assert "and has 12 now" in capsys.readouterr().err


def test_command_keeps_counts_at_the_memory_limit(tmp_path, capsys):
    text, out, counts = (tmp_path / name for name in ("text", "out", "counts"))
    text.write_bytes(numbers(60_000))
    options = text, "--vocab-size", 300, "-o", out, "--pattern", "gpt2"
    pruned = *options, "--memory-limit", "1MiB", "--prune"
    options = *options, "--save-counts", counts
    assert run_cli(*options, "--memory-limit", "1MiB") == 1
    assert "memory_limit" in capsys.readouterr().err
    assert run_cli(*options) == 0
    expected = tokens_of(counted([numbers(60_000)], "gpt2").merges(300))
    assert list(streamtok.vocabulary.load_tiktoken(out).to_ranks()) == expected
    assert run_cli(*pruned) == 0
    assert "not exact" in capsys.readouterr().err


def test_the_command_knows_all_names() -> None:
    assert set(trainer.PATTERNS) >= set(train.PATTERN_NAMES)
    assert merging.TIES == train.TIES
