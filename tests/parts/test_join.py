"""Decoding and joining what a job in parts has made: as if one process had made it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import streamtok
from streamtok.cli.main import main
from streamtok.files.part_file import hidden_path
from streamtok.pipeline.sinks import FILE_FORMATS

LINES = [f"line {i} of größere words 日本語\n" for i in range(200)]
TEXT = "".join([*LINES[:60], "\n", "\n", *LINES[60:], "\n"])
MARKED = ["--lines", "--append", "<|endoftext|>"]
SUFFIXES = {"megatron": ".bin", "datatrove": ".ds", "text": ".txt", "llmc": ".bin"}


def encode(folder: Path, chosen: str, *args: str) -> tuple[Path, Path]:
    """(the folder of a job of several parts, the output of one process)."""
    text = folder / "text"
    text.write_text(TEXT, "utf-8")
    one, job = folder / f"one{SUFFIXES.get(chosen, f'.{chosen}')}", folder / "job"
    command = ["encode", "-e", "gpt2", str(text), "--format", chosen, "-q", *args]
    assert main([*command, "-o", str(one)]) == 0
    command += ["--task", "0/1", "--part-size", "1500"]
    assert main([*command, "-o", str(job)]) == 0
    assert len(list((job / "records").rglob("*.json"))) > 3
    return job, one


def contents(first: Path) -> dict[str, object]:
    """The files of an output by the ends of their names, without the digest of the job."""
    found: dict[str, object] = {}
    for path in first.parent.glob(f"{first.stem}.*"):
        data: object = path.read_bytes()
        if path.suffix == ".json":
            row = json.loads(path.read_bytes())
            assert len(row.pop("job")) == 64
            data = row
        elif path.suffix in (".parquet", ".arrow"):
            data = re.sub(rb'"job": "\w{64}"', b"", path.read_bytes())
        found[path.name.removeprefix(first.stem)] = data
    return found


ROWS = ("jsonl", "megatron", "datatrove", "parquet", "arrow")  # documents are not cut in these
CASES = [(one, ["--lines"]) for one in FILE_FORMATS]
CASES += [(one, MARKED) for one in ("npy", "llmc", "parquet")]
CASES += [(one, []) for one in FILE_FORMATS if one not in ROWS]


@pytest.mark.parametrize(("chosen", "more"), CASES)
def test_joined_parts_are_what_one_process_makes(
    tmp_path: Path, chosen: str, more: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    job, one = encode(tmp_path, chosen, *more)
    (tmp_path / "joined").mkdir()
    joined = tmp_path / "joined" / one.name
    assert main(["join", str(job), "-o", str(joined), "-q"]) == 0
    found, expected = contents(joined), contents(one)
    if chosen == "parquet":  # pyarrow's footer has other offsets with another job
        assert found.keys() == expected.keys()
        import pyarrow.parquet as pq

        assert pq.read_table(joined).equals(pq.read_table(one))
    else:
        assert found == expected
    assert streamtok.verify([joined, job]).faults == []
    before = {path: path.read_bytes() for path in joined.parent.iterdir()}
    assert main(["join", str(job), "-o", str(joined), "-q"]) == 0  # the same job again
    assert {path: path.read_bytes() for path in joined.parent.iterdir()} == before
    text = one.parent / "text"
    if more == ["--lines"]:
        expected_text = TEXT.replace("\n", "").encode()
    else:
        expected_text = text.read_bytes().replace(b"\n", b"<|endoftext|>" if more else b"\n")
    firsts = sorted(p for p in job.glob("part-*") if p.suffix == one.suffix)
    capfdbinary.readouterr()
    for given in ([job], firsts, [joined], [job / "plan.jsonl"]):
        assert main(["decode", *map(str, given)]) == 0
        assert capfdbinary.readouterr().out == expected_text


def test_parts_without_sidecars(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The plan says what they are."""
    job, one = encode(tmp_path, "megatron", "--lines", "--no-sidecar")
    assert not list(job.glob("*.bin.json"))
    assert main(["decode", str(job)]) == 0
    assert capfdbinary.readouterr().out == TEXT.replace("\n", "").encode()
    assert main(["join", str(job), "-o", str(tmp_path / "j"), "-q"]) == 0
    for suffix in (".bin", ".idx"):
        assert (tmp_path / f"j{suffix}").read_bytes() == one.with_suffix(suffix).read_bytes()


def test_what_cannot_be_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, one = encode(tmp_path, "megatron", "--lines")
    out = tmp_path / "out.bin"

    def fails(*args: object) -> str:
        assert main(["join", *map(str, args)]) in (1, 2)
        assert not out.exists()
        return capsys.readouterr().err

    (part, other, *_) = sorted(job.glob("*.bin"))
    u16 = tmp_path / "other.u16"
    assert main(["encode", "-e", "gpt2", "-q", str(tmp_path / "text"), "-o", str(u16)]) == 0
    assert "has another format than" in fails(part, u16, "-o", out)
    assert "is also an input" in fails(part, other, "-o", part, "--force")
    assert "is a finished output" in fails(job, "-o", one)
    data = part.read_bytes()
    part.write_bytes(data[:-2])
    assert "part 0 is not done, or its files were changed" in fails(job, "-o", out)
    assert "its documents have" in fails(part, other, "-o", out)
    part.write_bytes(data)
    next((job / "records").rglob("*.json")).unlink()
    assert "is not done" in fails(job, "-o", out)
    assert not list(tmp_path.glob(".streamtok-*"))


DIES = """
import os, sys
from streamtok.cli import cmd_join
from streamtok.cli.main import main

cmd_join.join_into = lambda sink, sources: os._exit(9)
main(["join", *sys.argv[1:]])
"""


def test_joining_again_removes_what_a_killed_join_has_left(tmp_path: Path) -> None:
    job, one = encode(tmp_path, "megatron", "--lines")
    out = tmp_path / "joined" / "all.bin"
    out.parent.mkdir()
    command = [sys.executable, "-c", DIES, str(job), "-o", str(out)]
    assert subprocess.run(command, check=False).returncode == 9
    assert len(list(out.parent.glob(".*.part"))) > 1
    assert main(["join", str(job), "-o", str(out), "-q"]) == 0
    assert {path.name for path in out.parent.iterdir()} == {"all.bin", "all.idx", "all.bin.json"}
    assert out.read_bytes() == one.read_bytes()


def test_joining_goes_through_no_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, _ = encode(tmp_path, "u16", "--lines")
    out, precious = tmp_path / "all.u16", tmp_path / "precious"
    precious.write_text("precious")
    hidden = Path(hidden_path(str(out), "part"))
    hidden.symlink_to(precious)
    assert main(["join", str(job), "-o", str(out)]) == 1
    assert f"{hidden}: is a symbolic link" in capsys.readouterr().err
    assert precious.read_text() == "precious"
    assert os.path.islink(hidden)


def test_a_vocabulary_file_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("models").mkdir()
    Path("text").write_text(TEXT, "utf-8")
    assert main(["convert", "gpt2", "models/tokenizer.json", "-q"]) == 0
    command = ["encode", "-q", "text", "-e", "models/tokenizer.json"]
    assert main([*command, "-o", "a.npy"]) == 0
    assert main([*command, "-o", "a.parquet"]) == 0
    assert main([*command, "-o", "job", "--workers", "1"]) == 0
    capfdbinary.readouterr()
    for path in ("a.npy", "a.parquet", "job"):
        assert main(["decode", path]) == 0
        assert capfdbinary.readouterr().out == TEXT.encode()
    Path("models/tokenizer.json").rename("moved.json")
    assert main(["decode", "a.npy"]) == 1
    said = capfdbinary.readouterr().err.decode()
    assert "a.npy.json says that the ids are of models/tokenizer.json" in said
    assert said.endswith("which is not here: give that vocabulary with -e\n")
    assert main(["decode", "a.npy", "-e", "moved.json"]) == 0
    assert main(["convert", "r50k_base", "models/tokenizer.json", "-q"]) == 0
    Path("models/tokenizer.json").write_text(
        Path("models/tokenizer.json").read_text("utf-8").replace('"Ġthe"', '"Ġthex"', 1), "utf-8"
    )
    capfdbinary.readouterr()
    assert main(["decode", "a.npy"]) == 1
    assert b"give that vocabulary with -e" in capfdbinary.readouterr().err


def test_decode_names_what_it_cannot_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job, one = encode(tmp_path, "npy", "--lines")
    assert main(["decode", str(tmp_path)]) == 1
    assert "is a folder; give a file in it" in capsys.readouterr().err
    other = tmp_path / "other.npy"
    command = ["encode", "-e", "cl100k_base", "-q", str(tmp_path / "text"), "-o", str(other)]
    assert main(command) == 0
    assert main(["decode", str(one), str(other)]) == 1
    assert "decode them one by one" in capsys.readouterr().err
    (job / "manifest.jsonl").unlink()
    next((job / "records").rglob("*2.json")).unlink()
    assert main(["decode", str(job), "-o", str(tmp_path / "back")]) == 1
    assert "part 2 is not done" in capsys.readouterr().err
    assert not (tmp_path / "back").exists()
