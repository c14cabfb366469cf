"""Counts of pre-tokens in parts: they are those of one trainer, and so is the vocabulary."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest

from streamtok import StreamtokError, Trainer
from streamtok.cli.open_inputs import Notes, Opener
from streamtok.jobs.parts.counted_files import FileCounts
from streamtok.jobs.sources import Reading, unit_ends


def texts() -> list[bytes]:
    rng = random.Random(8)
    words = ["low", "lower", "newest", "widest", "", "日本語", "the", "don't", "2026", "\n\n", "."]
    return [" ".join(rng.choices(words, k=size)).encode() for size in (900, 1, 0, 400)]


def alone(paths: list[str], pattern: str, errors: str = "strict") -> Trainer:
    trainer = Trainer(pattern, errors=errors)
    for path in paths:
        trainer.update_file(path)
    return trainer


def count_in_parts(
    paths: list[str],
    pattern: str,
    reading: Reading = Reading(),  # noqa: B008
    **how: Any,
) -> Trainer:
    counts = FileCounts(Trainer(pattern, errors=reading.errors), paths, reading)
    opener = Opener(reading, Notes(), contextlib.nullcontext, 1 << 10)
    counts.count(lambda name, span, on_bad: opener.open(name, on_bad, span), **how)
    return counts.trainer


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(unit_ends, "UNIT", 1)  # inputs share no span
    paths = []
    for number, text in enumerate(texts()):
        path = tmp_path / f"in{number}"
        path.write_bytes(text)
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", r"\S+|\s+"])
@pytest.mark.parametrize("unit", [101, 1 << 20])
def test_the_counts_are_those_of_one_trainer(
    files: list[str], pattern: str, unit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_ends, "UNIT", unit)
    sizes: list[int] = []
    made = count_in_parts(files, pattern, advance=lambda size, _: sizes.append(size))
    whole = alone(files, pattern)
    assert list(made.piece_counts().items()) == list(whole.piece_counts().items())
    assert made.bytes_in == whole.bytes_in == sizes[-1]
    assert sizes == sorted(sizes)
    assert len(sizes) > 50 or unit > 101
    ties: Any = ("raw", "hf", "first")
    for tie in ties:
        assert made.train(300, tie=tie).digest == whole.train(300, tie=tie).digest


@pytest.mark.parametrize("errors", ["replace", "surrogateescape"])
def test_bytes_that_are_not_utf8(
    tmp_path: Path, errors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_ends, "UNIT", 90)
    path = tmp_path / "in"
    path.write_bytes(random.Random(1).randbytes(2000) + b"\xed\xa0x \xf0\x9f\n" * 100)
    made = count_in_parts([str(path)], "gpt2", reading=Reading(errors=errors))
    assert made.piece_counts() == alone([str(path)], "gpt2", errors).piece_counts()


def test_what_is_wrong_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_ends, "UNIT", 200)
    path = tmp_path / "in"
    path.write_bytes(b"good " * 100 + b"\xff" + b" good" * 100)
    with pytest.raises(StreamtokError, match="in: byte 500 is not UTF-8"):
        count_in_parts([str(path)], "gpt2")
    with pytest.raises(FileNotFoundError):
        count_in_parts([str(tmp_path / "no")], "gpt2")
