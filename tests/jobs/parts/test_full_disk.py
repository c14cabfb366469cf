"""Parts on a disk that becomes full: complete files or none, and the same command goes on."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

from streamtok import commit, plan, run_part

from ...cli.test_cli import POSIX, only_error, run, spawn, wrapped
from ...system_calls import at_most, check_each_call, contents

KINDS: dict[str, dict[str, Any]] = {
    "u16": {},
    "npy": {"lines": True, "append": 50256},
    "megatron": {"lines": True},
    "datatrove": {"lines": True},
    "jsonl": {"jsonl": "text"},
    "parquet": {"lines": True},
}
TEXT = "Some words, and others; 日本語.\n" * 8


def written(path: Path, options: dict[str, Any]) -> Path:
    rows = TEXT.splitlines()
    is_json = "jsonl" in options
    path.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows) if is_json else TEXT)
    return path


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of files are made; whether they survive a power cut is no matter here."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.mark.parametrize("still", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_each_call(tmp_path, kind, still):
    options = {"format": kind, **KINDS[kind]}
    text, out = written(tmp_path / "in.txt", options), tmp_path / "out"

    def job():
        made = plan(text, out, encoding="gpt2", part_size=150, **options)
        made.save()
        for number in range(len(made)):
            run_part(made, number)
        commit(made)

    def named(error):
        path = Path(error.filename)
        return out in (path, *path.parents) and not path.name.startswith(".")

    n_calls = check_each_call(
        job, lambda: shutil.rmtree(out, ignore_errors=True), lambda: contents(out), still, named, 3
    )
    assert n_calls > 30


# Positions in stores: the disk that is full is that of the temporary folder.


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def objects(name: str) -> dict[str, bytes]:
    """The objects in a folder in memory."""
    store = fsspec.filesystem("memory")
    return {one: store.cat_file(one) for one in store.find(f"/{name}")}


def check_uploads(job: Callable[[], None], name: str, temporary: Path, still: bool) -> int:
    """As `check_each_call`, for a job that makes objects in a folder in memory."""
    store = fsspec.filesystem("memory")

    def reset() -> None:
        if store.exists(f"/{name}"):
            store.rm(f"/{name}", recursive=True)

    def seen() -> dict[str, bytes]:
        assert os.listdir(temporary) == []
        return objects(name)

    try:
        return check_each_call(
            job, reset, seen, still, lambda error: temporary in Path(error.filename).parents
        )
    finally:
        reset()


@pytest.mark.parametrize("still", [False, True])
def test_each_call_of_uploads(tmp_path, temporary, still):
    text = written(tmp_path / "in.txt", {})
    name = f"parts-{tmp_path.name}-{still}"

    def job():
        made = plan(text, f"memory:///{name}", encoding="gpt2", part_size=150, format="npy")
        made.save()
        for number in range(len(made)):
            run_part(made, number)
        commit(made)

    assert check_uploads(job, name, temporary, still) > 20


# The command line, with processes whose files cannot grow beyond a size


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    written(tmp_path / "in.txt", {})
    # A part of ids is smaller than its sidecar, and that than the manifest.
    args = ["encode", "-q", "-e", "gpt2", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out")]
    return [*args, "--task", "0/1", "--part-size", "150", "--format", "u16"]


TARGETS = {
    "plan": "job.json",
    "ids": "part-000000-of-000002.u16",
    "sidecar": "part-000000-of-000002.u16.json",
    "manifest": "manifest.jsonl",
}


@POSIX
@pytest.mark.parametrize("target", TARGETS)
def test_the_command_line(tmp_path, command, target):
    out = tmp_path / "out"
    assert run(*command).returncode == 0
    whole = contents(out)
    path = out / TARGETS[target]
    if target == "plan":
        shutil.rmtree(out)
    else:
        path.unlink()
    sizes = {kind: len(whole[name]) for kind, name in TARGETS.items()}
    assert sizes["ids"] < sizes["sidecar"] < sizes["manifest"]
    limited = wrapped(at_most(sizes[target] - 1), *command)
    then = "" if target == "plan" else f"; then the same command continues {tmp_path / 'out'}"
    assert only_error(spawn(limited)) == f"{path}: File too large{then}"
    left = contents(out)
    assert left == {name: whole[name] for name in left}
    assert not path.exists()
    done = run(*command)
    assert (done.returncode, done.stderr) == (0, b"")
    assert contents(out) == whole


@POSIX
def test_what_a_killed_driver_left_of_its_plan(tmp_path, command):
    out = tmp_path / "out"
    assert run(*command).returncode == 0
    whole = contents(out)
    shutil.rmtree(out)
    out.mkdir()
    hidden = out / ".streamtok-0123456789abcdef.part"
    hidden.write_bytes(whole["job.json"][:100])
    done = run(*command)
    assert (done.returncode, done.stderr) == (0, b"")
    hidden.unlink()
    assert contents(out) == whole
