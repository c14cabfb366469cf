"""Jobs in parts: bad text, two jobs at once, processes that die, and the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from streamtok import Plan, PlanError, commit
from streamtok.jobs.parts.part import missing_parts, run_parts

from ...cli.test_cli import run
from .conftest import contents, make

ROOT = Path(__file__).resolve().parents[2]


def test_bad_text_stops_only_its_part(text: Path) -> None:
    data = bytearray(text.read_bytes())
    data[25_000:25_001] = data[55_000:55_001] = b"\xff"
    text.write_bytes(data)
    made = make(text)
    with pytest.raises(PlanError) as caught:
        run_parts(made, range(len(made)))
    first = sorted(str(caught.value).splitlines())[0]
    assert "byte 25000 is not UTF-8 (invalid start byte); --errors replace" in first
    assert list(missing_parts(made)) == [2, 5]
    with pytest.raises(PlanError, match="these parts are missing: 2, 5"):
        commit(made)


def test_two_jobs_with_one_plan_at_once(text: Path) -> None:
    made = make(text)
    made.save()
    errors: list[BaseException] = []

    def job() -> None:
        try:
            run_parts(made, range(len(made)))
            commit(made)
        except BaseException as error:
            errors.append(error)

    jobs = [threading.Thread(target=job) for _ in range(2)]
    for one in jobs:
        one.start()
    for one in jobs:
        one.join()
    assert not errors
    other = make(text, "other")
    run_parts(other, range(len(other)))
    assert contents(made) == contents(other)


def test_a_driver_that_is_killed_goes_on(text: Path) -> None:
    args = [
        sys.executable, "-m", "streamtok", "encode", "-q", "-e", "gpt2", str(text),
        "--task", "0/1", "--part-size", "10000", "-o", str(text.parent / "out"),
    ]  # fmt: skip
    for delay in (0.3, 0.6, 0.9):
        process = subprocess.Popen(args, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        time.sleep(delay)
        process.kill()
        process.wait()
    done = subprocess.run(args, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    made, other = Plan.load(str(text.parent / "out")), make(text, "other")
    run_parts(other, range(len(other)))
    assert commit(made) == commit(other)
    assert {digest for name, digest in contents(made).items() if name.endswith(".u16")} == {
        digest for name, digest in contents(other).items() if name.endswith(".u16")
    }
    hidden = [one.name for one in (text.parent / "out").iterdir() if one.name.startswith(".")]
    assert all("lock" in name or name.endswith(".part") for name in hidden), hidden


def test_shares_of_the_command_line(text: Path) -> None:
    out = text.parent / "out"
    args = ["encode", "-e", "gpt2", str(text), "--part-size", "20k", "-o", str(out)]
    said = run(*args, "--task", "1/2").stderr.decode()
    assert "this task is finished; part 0 is pending, and perhaps others" in said
    assert not (out / "manifest.jsonl").exists()
    said = run(*args, "--task", "0/2").stderr.decode()
    assert (out / "manifest.jsonl").exists()
    assert "1 input, " in said
    whole = text.parent / "whole.u16"
    run("encode", "-q", "-e", "gpt2", str(text), "-o", str(whole))
    joined = b"".join(path.read_bytes() for path in sorted(out.glob("part-*.u16")))
    assert joined == whole.read_bytes()
