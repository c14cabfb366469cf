"""`benchmarks.instructions`: what is counted, what is kept, what counts as a rise."""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))  # last: an installed one goes first
from benchmarks import corpus, instructions, peers
from benchmarks.instructions import Count

DUMP = """# callgrind format
version: 1
creator: callgrind-3.19.0
cmd:  python -m benchmarks.instructions
part: 2

desc: Timerange: Basic block 1 - 2
desc: Trigger: Client Request: 64 KiB chunks

events: Ir
summary: 123456

fn=x
1 5
totals: 123456
"""


def test_what_callgrind_writes_is_read():
    assert instructions.read_dump(DUMP) == ("64 KiB chunks", 123456)
    assert instructions.read_dump("desc: Trigger: Program termination\ntotals: 5\n") == ("", 5)


class Recorder:
    """In the place of the library: begin and end, in order."""

    def __init__(self, name):
        self.calls = calls

    def begin(self):
        self.calls.append("begin")

    def end(self, name):
        self.calls.append(name.decode())


calls: list[str] = []


@pytest.mark.parametrize("encoding", ["r50k_base", "training"])
def test_each_door_is_counted_once(encoding, monkeypatch, tmp_path):
    file = tmp_path / "text"
    file.write_bytes(corpus.load("logs", 20_000))
    monkeypatch.setattr(ctypes, "CDLL", Recorder)
    calls.clear()
    sizes = instructions.count_here({"encoding": encoding, "file": str(file), "library": "x"})
    assert calls == [word for name in sizes for word in ("begin", name)]
    first, second = corpus.halves(file.read_bytes())
    if encoding == "training":
        assert sizes == {"2048 tokens": len(first) + len(second)}
    else:
        assert sizes.pop("cold") == len(first)
        assert set(sizes) == {"unseen", "seen", "64 KiB chunks", "lines", "list", "decode"}
        assert set(sizes.values()) == {len(second)}


def test_a_rise_of_more_than_two_percent_is_told():
    kept = {Count("a", "b", door): 100.0 for door in "xyz"}
    counts = {Count("a", "b", "x"): 102.0, Count("a", "b", "y"): 102.1, Count("a", "b", "n"): 9.0}
    assert instructions.risen(kept, counts) == ["a / b / y: 100.00 before, 102.10 now (+2.1%)"]
    lines = list(instructions.table(kept, counts))
    assert lines[1:] == [
        "| a | b | x | 100.00 | 102.00 | +2.0% |",
        "| a | b | y | 100.00 | 102.10 | +2.1% |",
        "| a | b | n | – | 9.00 | new |",
    ]


def test_figures_are_kept_where_nothing_new_was_counted(monkeypatch):
    digests = {"code": "1", "logs": "2"}
    monkeypatch.setattr(instructions, "digest", digests.__getitem__)
    old = {Count("a", "code", "x"): 1.0, Count("a", "logs", "x"): 2.0}
    data = json.loads(json.dumps(instructions.to_json({}, old, ["code", "logs"])))
    assert instructions.from_json(data, ["code", "logs"]) == (old, [])
    assert instructions.from_json({}, ["code"]) == ({}, [])
    data = instructions.to_json(data, {Count("a", "logs", "x"): 3.0}, ["logs"])
    assert instructions.from_json(data, ["code", "logs"])[0][Count("a", "code", "x")] == 1.0
    digests["code"] = "another"
    assert instructions.from_json(data, ["code", "logs"]) == (
        {Count("a", "logs", "x"): 3.0},
        ["code"],
    )


def run(monkeypatch, tmp_path, value, *args):
    """The exit code of the command where each figure is `value`."""
    monkeypatch.setattr(instructions.shutil, "which", lambda name: name)
    monkeypatch.setattr(instructions, "compile_library", lambda folder: folder)
    monkeypatch.setattr(
        instructions, "count", lambda encoding, text, _: {Count(encoding, text, "cold"): value}
    )
    file = str(tmp_path / "figures.json")
    command = ["instructions", "--figures", file, "--corpora", "logs", *args]
    monkeypatch.setattr(sys, "argv", command)
    return instructions.main()


def test_the_command_keeps_and_compares(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, tmp_path, 50.0) == 2
    assert "run with --write first" in capsys.readouterr().out
    assert run(monkeypatch, tmp_path, 50.0, "--write") == 0
    assert run(monkeypatch, tmp_path, 50.5) == 0
    assert capsys.readouterr().out.endswith("Nothing rose.\n")
    assert run(monkeypatch, tmp_path, 60.0, "--encodings", "o200k_base") == 1
    printed = capsys.readouterr().out
    assert printed.endswith("o200k_base / logs / cold: 50.00 before, 60.00 now (+20.0%)\n")
    monkeypatch.setattr(instructions, "digest", lambda name: "another")
    assert run(monkeypatch, tmp_path, 60.0) == 2
    assert "others than in the file: logs" in capsys.readouterr().out


def test_without_valgrind_the_command_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(instructions.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["instructions"])
    with pytest.raises(SystemExit):
        instructions.main()
    assert "apt-get install valgrind" in capsys.readouterr().err


def test_the_kept_file_is_whole():
    data = json.loads(instructions.FIGURES.read_text())
    assert set(data["figures"]) == {*peers.ENCODINGS, "training"}
    doors = {"cold", "unseen", "seen", "64 KiB chunks", "lines", "list", "decode"}
    for encoding, texts in data["figures"].items():
        assert set(texts) >= set(corpus.NAMES)
        for found in texts.values():
            assert set(found) == ({"2048 tokens"} if encoding == "training" else doors)
            assert all(value > 0 for value in found.values())
