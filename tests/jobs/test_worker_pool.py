"""Processes that share one output: dead ones, errors, answers that do not fit into memory."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
from pathlib import Path

import pytest

from streamtok.cli.main import main
from streamtok.jobs import worker_pool
from streamtok.jobs.sources import unit_ends

from ..system_calls import contents

UNIT = 3000


@pytest.fixture(autouse=True)
def _small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool tells its workers."""
    monkeypatch.setattr(unit_ends, "UNIT", UNIT)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    rng = random.Random(5)
    words = ["some", "words", "日本語", "and", "2026", "<|x|>"]
    path = tmp_path / "in.txt"
    rows = (" ".join(rng.choices(words, k=rng.randrange(40))) for _ in range(400))
    path.write_text("\n".join(rows) + "\n")
    return path


def encode(path: Path, out: Path, *more: str) -> int:
    return main(["encode", "-q", "-e", "gpt2", str(path), "-o", str(out), *more])


def children() -> list[int]:
    """The processes that are workers of this one."""
    # -ww: else COLUMNS cuts the lines.
    command = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(os.getpid())]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "run_worker" in line]


def made(tmp_path: Path, path: Path, name: str, *more: str) -> dict[str, bytes]:
    folder = tmp_path / name
    folder.mkdir()
    assert encode(path, folder / "out.npy", *more) == 0
    return contents(folder)


def test_workers_that_are_killed(lines, tmp_path, monkeypatch):
    whole = made(tmp_path, lines, "whole", "--lines")
    events = worker_pool._Answer.events
    kills = 0

    def killing(answer):
        nonlocal kills
        if kills < 4 and answer._ready > answer._emitted:
            kills += 1
            for pid in children():
                os.kill(pid, signal.SIGKILL)
        yield from events(answer)

    monkeypatch.setattr(worker_pool._Answer, "events", killing)
    # An answer has three attempts.
    monkeypatch.setattr(worker_pool, "_ATTEMPTS", 9)
    assert made(tmp_path, lines, "killed", "--lines", "--workers", "2") == whole
    assert kills == 4
    assert not children()


def test_a_span_that_kills_its_workers(lines, tmp_path, monkeypatch, capsys):
    dying = "import os, sys; os.read(int(sys.argv[1]), 9); os.kill(os.getpid(), 9)"
    monkeypatch.setattr(worker_pool, "_PROGRAM", dying)
    assert encode(lines, tmp_path / "out.npy", "--lines", "--workers", "2") == 1
    said = capsys.readouterr().err
    assert "the process that worked on input 1 died 3 times" in said
    assert [one.name for one in tmp_path.iterdir()] == ["in.txt"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b'{"text": "<|endoftext|>"}', "disallowed special token '<|endoftext|>' at byte 0"),
        (b'{"tex": 1}', "no field 'text'"),
        (b'{"text": "a\xff"}', "not UTF-8"),
    ],
)
def test_an_error_names_the_line(tmp_path, bad, said, capsys):
    good = b'{"text": "some words of a line"}\n'
    path = tmp_path / "in.jsonl"
    path.write_bytes(good * 700 + bad + b"\n" + good * 300)
    out = tmp_path / "out.npy"
    # Of a run that can be resumed, one of the errors is enough.
    resumable = ["--resume", "--checkpoint-every", "0"] if said == "not UTF-8" else []
    for more in (["--workers", "2", *resumable], []):
        assert encode(path, out, "--jsonl", "text", *more) == 1
        message = capsys.readouterr().err
        if more:
            assert re.search(r"in\.jsonl (line [0-9]+ after )?byte [0-9]+: ", message)
        else:
            assert f"{path} line 701: " in message
        assert said in message
        assert not out.exists()


def test_answers_go_to_temporary_files_and_wait(lines, tmp_path, monkeypatch):
    whole = made(tmp_path, lines, "whole", "--lines")
    monkeypatch.setattr(worker_pool, "_IN_MEMORY", 100)
    monkeypatch.setattr(worker_pool, "_IN_FILES", 2000)  # the first span only, mostly
    assert made(tmp_path, lines, "files", "--lines", "--workers", "3") == whole


@pytest.mark.parametrize("size", [UNIT, 5 * UNIT])
def test_a_word_longer_than_a_unit(tmp_path, size):
    path = tmp_path / "in.txt"
    path.write_text("ab " * 1500 + "x" * size + " ab" * 1500)
    whole = made(tmp_path, path, "whole")
    assert made(tmp_path, path, "workers", "--workers", "2") == whole
    pieces = json.loads(whole["out.npy.json"])["pieces"]
    assert len(pieces) <= 1 + (path.stat().st_size - size) // UNIT + 1


def test_workers_go_on_from_a_mark_inside_a_text_that_is_changed(tmp_path):
    """One process made the mark; what it held is part of the span that a worker gets."""
    vocab = {chr(code): code - 32 for code in range(32, 127)} | {"\u00e9": 95, "ab": 96}
    tokenizer = {
        "added_tokens": [],
        "normalizer": {"type": "NFC"},
        "model": {"type": "BPE", "vocab": vocab, "merges": ["a b"], "unk_token": "x"},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    path, out = tmp_path / "in.txt", tmp_path / "out.npy"
    path.write_bytes(b"ab e\xcc\x81 cab" * 999 + b"\xff" + b"ab " * 999)
    command = ["encode", "-q", "-e", str(tmp_path / "tokenizer.json"), "--chunk-size", "1k"]
    command += [str(path), "-o", str(out)]
    assert main([*command, "--errors", "replace"]) == 0
    good = out.read_bytes()
    for each in tmp_path.glob("out.*"):
        each.unlink()
    command += ["--resume", "--checkpoint-every", "0"]
    assert main(command) == 1
    assert b'"stream": {' in (tmp_path / "out.npy.checkpoint").read_bytes()
    assert main([*command, "--errors", "replace", "--workers", "2"]) == 0
    assert out.read_bytes() == good
