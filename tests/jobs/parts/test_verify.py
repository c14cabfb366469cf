"""`verify`: what changes one byte of a finished output is found, and told by file and place."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import streamtok
from streamtok.cli.main import main
from streamtok.jobs.sinks.by_name import FILE_FORMATS

TEXT = "".join(f"line {i} of a text with some words\n" for i in range(300))
SUFFIXES = {"megatron": ".bin", "datatrove": ".ds", "text": ".txt"}


def encode(folder: Path, chosen: str, *args: str) -> Path:
    (folder / "text").write_text(TEXT)
    out = folder / f"out{SUFFIXES.get(chosen, f'.{chosen}')}"
    command = ["encode", "-e", "gpt2", "--lines", "-q", str(folder / "text"), "-o", str(out)]
    assert main([*command, "--format", chosen, *args]) == 0
    (folder / "text").unlink()
    return out


@pytest.fixture(params=FILE_FORMATS)
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return encode(tmp_path, request.param)


def faults(*paths: Path) -> list[str]:
    return [str(one) for one in streamtok.verify(paths).faults]


def test_every_changed_byte_is_found(out):
    dice = random.Random(7)
    for file in sorted(out.parent.iterdir()):
        if file.suffix == ".json":
            continue
        data = file.read_bytes()
        for _ in range(30):
            at = dice.randrange(len(data))
            changed = bytearray(data)
            changed[at] ^= 1 << dice.randrange(8)
            file.write_bytes(changed)
            assert not streamtok.verify(out).is_ok, (file, at)
        for cut in (data[:-1], data[: len(data) // 2], b"", data + b"\0"):
            file.write_bytes(cut)
            assert not streamtok.verify(out).is_ok, (file, len(cut))
        file.unlink()
        assert file.name in " ".join(faults(out))
        file.write_bytes(data)
    assert streamtok.verify(out).is_ok


def rewritten(out: Path, change: Callable[[dict[str, object]], object]) -> None:
    row = json.loads(Path(f"{out}.json").read_text())
    change(row)
    Path(f"{out}.json").write_text(json.dumps(row))


def test_a_sidecar_that_says_something_else(tmp_path):
    out = encode(tmp_path, "npy")
    rewritten(out, lambda row: row.update(bytes=row["bytes"] + 1))
    assert "that were recorded" in faults(out)[0]
    rewritten(out, lambda row: row.update(bytes=row["bytes"] - 1, pieces=row["pieces"][:-1]))
    assert "its pieces are not the whole file" in faults(out)[0]
    rewritten(out, lambda row: row.update(format="of tomorrow"))
    assert "the format of tomorrow, which is not known" in faults(out)[0]
    Path(f"{out}.json").write_bytes(b"{")
    assert "is damaged" in faults(out)[0]
    Path(f"{out}.json").unlink()
    assert "it has no sidecar" in faults(out)[0]


# Jobs in parts


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text(TEXT)
    plan = streamtok.plan(
        [tmp_path / "text"], tmp_path / "job", encoding="gpt2", lines=True, part_size=3000,
        format="megatron",
    )  # fmt: skip
    plan.save()
    for number in range(len(plan)):
        streamtok.run_part(plan, number)
    streamtok.commit(plan)
    return tmp_path / "job"


def test_a_job(job, tmp_path, monkeypatch):
    report = streamtok.verify(job)
    assert report.is_ok, report.faults
    assert report.documents == 300
    moved = job.rename(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    for path in (moved, "elsewhere/", moved / "job.json"):
        assert streamtok.verify(path).is_ok


def test_what_is_wrong_in_a_job(job):
    for file in sorted(one for one in job.rglob("*") if one.is_file()):
        data = file.read_bytes()
        file.unlink()
        found = " ".join(faults(job))
        assert (file.name in found) or (file.name == "job.json" and found), file
        file.write_bytes(data[:-2] + b"~" + data[-1:])
        assert faults(job), file
        file.write_bytes(data)
    part = next(iter(sorted(job.glob("*.bin"))))
    other = sorted(job.glob("*.bin"))[1]
    for suffix in (".bin", ".idx", ".bin.json"):  # whole parts that were exchanged
        one, two = (Path(f"{path}".removesuffix(".bin") + suffix) for path in (part, other))
        kept = one.read_bytes()
        one.write_bytes(two.read_bytes())
        two.write_bytes(kept)
    assert part.name in " ".join(faults(job))


def test_the_log_of_skipped_lines_is_checked(tmp_path):
    (tmp_path / "text").write_text('{"text": "words"}\n' * 50 + "no JSON\n")
    plan = streamtok.plan(
        tmp_path / "text", tmp_path / "job", encoding="gpt2", jsonl="text", skip_bad_lines=True
    )
    plan.save()
    streamtok.run_part(plan, 0)
    streamtok.commit(plan)
    assert streamtok.verify(tmp_path / "job").is_ok
    (log,) = (tmp_path / "job").glob("part-*.skipped.jsonl")
    log.write_bytes(log.read_bytes().replace(b"text", b"test"))
    merged = tmp_path / "job" / "skipped.jsonl"
    assert faults(tmp_path / "job") == [f"{merged}: line 1 does not match the parts"]


def test_the_command(job, capsys):
    assert main(["verify", str(job)]) == 0
    assert "no faults in" in capsys.readouterr().err
    part = sorted(job.glob("*.bin"))[1]
    part.write_bytes(part.read_bytes()[:-2])
    assert main(["verify", str(job), str(job.parent / "nope.npy")]) == 1
    out = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{part}: it has ") for line in out)
    assert out[-1].startswith(f"{job.parent / 'nope.npy'}: ")
    assert main(["verify", "--json", str(job)]) == 1
    found = json.loads(capsys.readouterr().out)["faults"]
    assert str(part) in [path for path, _ in found]


@pytest.mark.skipif(os.name != "posix", reason="FIFOs are POSIX")
def test_a_fifo_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "a.npy")
    assert "not a regular file" in faults(tmp_path / "a.npy")[0]
    out = encode(tmp_path, "datatrove")
    os.remove(f"{out}.index")
    os.mkfifo(f"{out}.index")
    assert f"{out}.index: " in " ".join(faults(out))
