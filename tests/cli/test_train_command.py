"""Tests of `streamtok train`, in process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import streamtok
from streamtok import Trainer
from streamtok.cli import cmd_train as train
from streamtok.cli.main import main
from streamtok.load import load_tiktoken_bpe
from streamtok.patterns.named import PATTERNS

from ..trained import counted, numbers, some_text, tokens_of


def run_cli(*args: object) -> int:
    """Train, and replace the vocabulary of the call before."""
    from streamtok.cli.main import main

    return main(["train", *map(str, args), "--force"])


def texts_of_files() -> list[str]:
    """Six texts of 9003 bytes, whatever the text is made of."""
    whole = "".join(filter(str.isascii, "".join(some_text())))
    return [f"{whole[start : start + 8990]}naïve 日本" for start in range(0, 53_940, 8990)]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for i, text in enumerate(texts_of_files()):
        paths.append(tmp_path / f"{i}.txt")
        paths[-1].write_text(text, "utf-8", newline="")
    return paths


def test_command(files, tmp_path, capsys):
    out = tmp_path / "mine.tiktoken"
    assert run_cli(*files, "--vocab-size", 700, "-o", out, "--special-token", "<|end|>") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "700 tokens in" in said.err
    assert "'<|end|>' has id 699" in said.err
    expected = streamtok.Encoding.train_from_iterator(texts_of_files(), 699)
    assert load_tiktoken_bpe(str(out)) == expected._mergeable_ranks
    options = "--pattern", "gpt2", "--tie", "hf", "--min-frequency", 4, "--threads", 1, "-q"
    assert run_cli(*files, "--vocab-size", 400, "-o", out, *options) == 0
    trainer = counted(texts_of_files(), "gpt2")
    tokens = list(load_tiktoken_bpe(str(out)))
    assert tokens == tokens_of(trainer.merges(400, tie="hf", min_frequency=4))
    assert capsys.readouterr().err == ""


def test_command_on_standard_input(files):
    import subprocess
    import sys

    out = files[0].with_suffix(".tiktoken")
    command = [sys.executable, "-m", "streamtok", "train", "--vocab-size", "300", "-o", str(out)]
    with open(files[0], "rb") as text:
        subprocess.run(command, stdin=text, check=True, capture_output=True)
    tokens = list(load_tiktoken_bpe(str(out)))
    assert tokens == tokens_of(counted(texts_of_files()[:1]).merges(300))


def test_command_for_wordpiece(files, tmp_path, capsys):
    out = tmp_path / "tokenizer.json"
    options = "--model", "wordpiece", "--vocab-size", 300
    assert run_cli(*files, *options, "-o", out, "--limit-alphabet", 30, "-q") == 0
    expected = counted(texts_of_files(), "bert").train_wordpiece(300, limit_alphabet=30)
    enc = streamtok.load(out)
    text = texts_of_files()[0]
    assert enc.encode(text) == expected.encode(text)
    assert enc.n_vocab == 300
    for args, message in (
        (["--tie", "raw"], "--tie cannot be used with --model wordpiece"),
        (["--special-token", "[PAD]"], "'[UNK]' is not one of the special tokens"),
        (["--to", "tiktoken"], "tiktoken"),
    ):
        assert run_cli(*files, *options, "-o", tmp_path / "new.json", *args) != 0
        assert message in capsys.readouterr().err
    assert run_cli(*files, "--vocab-size", 300, "-o", out, "--limit-alphabet", 30) != 0
    assert "--limit-alphabet needs --model wordpiece" in capsys.readouterr().err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("many").write_bytes(numbers(60_000))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--vocab-size", 200], "must be at least 256"),
        (["--vocab-size", 256, "--special-token", "x"], "must be at least 256"),
        (["--vocab-size", 300, "--special-token", "x", "--special-token", "x"], "special tokens"),
        (["--vocab-size", 300, "--pattern", "("], "pattern"),
        (["--vocab-size", 300, "--pattern", "(?<=a)b"], "look-behind"),
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
    assert "byte 5 is not UTF-8 (invalid start byte)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_counts_can_be_saved(files, tmp_path):
    counts = tmp_path / "saved.counts"
    options = "--vocab-size", 300, "-o", tmp_path / "out", "-q", "--save-counts", counts
    assert run_cli(*files, *options) == 0
    saved = Trainer.load_counts(counts)
    assert saved.piece_counts() == counted(texts_of_files(), "cl100k").piece_counts()


def test_the_name_says_the_format(files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = "--vocab-size", 400, "--special-token", "<|end|>", "--pattern", "gpt2"
    assert run_cli(*files, *options, "-o", "tokenizer.json") == 0
    said = capsys.readouterr().err
    assert "'<|end|>' has id 399\n" in said
    loaded = streamtok.load("tokenizer.json")
    trainer = counted(texts_of_files(), "gpt2")
    expected = trainer.train(400, special_tokens=["<|end|>"])
    text = texts_of_files()[0] + "<|end|>"
    ids = expected.encode(text, allowed_special="all")
    assert ids[-1] == 399
    assert loaded.encode(text, allowed_special="all") == ids
    assert run_cli(*files, *options, "-o", "mine", "--to", "huggingface", "-q") == 0
    assert Path("mine").read_bytes() == Path("tokenizer.json").read_bytes()
    assert run_cli(*files, *options, "-o", "my.json", "-q") == 0  # loads, whatever its name
    assert Path("my.json").read_bytes() == Path("tokenizer.json").read_bytes()
    assert run_cli(*files, *options, "--to", "tiktoken", "-o", "ranks", "-q") == 0
    assert Path("ranks").exists()
    for _ in range(2):  # the second time it is there
        assert run_cli(*files, *options, "--to", "gpt2", "-o", "folder", "-q") == 0
    assert sorted(path.name for path in Path("folder").iterdir()) == ["encoder.json", "vocab.bpe"]


def test_formats_that_cannot_hold_it_are_refused_at_once(folder, monkeypatch, capsys):
    monkeypatch.setattr(Trainer, "update", None)  # nothing is counted
    for args, message in (
        (["-o", "encoder.json"], "does not tell the format"),
        (["-o", "mine.model"], "read and not written"),
        (["-o", "tekken.json"], "read and not written"),
    ):
        assert run_cli("many", "--vocab-size", 300, *args) == 1
        assert message in capsys.readouterr().err
    assert sorted(os.listdir(".")) == ["many"]


def test_the_command_knows_all_names():
    assert set(PATTERNS) >= set(train.PATTERN_NAMES)


# Inputs


def test_bad_lines(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "low low"}\n{"tex": 1}\nnot JSON\n{"text": "lower"}\n')
    out = str(tmp_path / "out.tiktoken")
    args = ["train", str(path), "--vocab-size", "257", "-o", out, "--force"]
    assert main([*args, "--jsonl", "text"]) == 1
    assert "a.jsonl line 2: no field 'text'" in capsys.readouterr().err
    assert main([*args, "--jsonl", "text", "--skip-bad-lines"]) == 0
    assert "2 skipped (no field 'text': 1, invalid JSON: 1)" in capsys.readouterr().err
    assert main([*args, "--jsonl", "txet", "--skip-bad-lines"]) == 1
    assert "no document is left: 4 lines or rows were skipped" in capsys.readouterr().err


def test_a_bad_text_is_named(tmp_path, capsys):
    path, out = tmp_path / "a", str(tmp_path / "out")
    args = ["train", str(path), "--vocab-size", "257", "-o", out, "-q"]
    path.write_bytes(b"low\nlower\nlo\xffw\nlow\n")
    assert main([*args, "--lines"]) == 1
    assert "a: document 3: byte 2 is not UTF-8 (invalid start byte)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a.jsonl", "a.NDJSON", "a.jsonl.gz", "a.parquet"])
def test_records_that_are_taken_as_plain_text(name, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(b'{"text": "low low"}\n')
    option = "--parquet COLUMN" if "parquet" in name else "--jsonl FIELD"
    out = str(tmp_path / "out")
    commands = (
        ["count", str(path)],
        ["encode", str(path), "-o", out],
        ["encode", str(path), "-o", f"{out}2", "--task", "0/1"],
        ["train", str(path), "--vocab-size", "257", "-o", f"{out}3"],
    )
    for command in commands:
        assert main(command) == 0
        said = capsys.readouterr().err
        assert said.count("taken as plain text") == 1, said
        assert f"{path}: " in said
        assert option in said
    if "jsonl" in name.lower():
        path.write_bytes(b'{"text": "low low"}\n')
        assert main(["count", "--jsonl", "text", str(path)]) == 0
        assert capsys.readouterr().err == ""
    assert main(["encode", str(path), "-q", "-o", f"{out}5"]) == 0
    assert capsys.readouterr().err == ""
