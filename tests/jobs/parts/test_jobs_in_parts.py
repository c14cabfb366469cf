"""Jobs in parts: bad text, two jobs at once, processes that die, and the command line."""

from __future__ import annotations

import pytest

from streamtok import PlanError, commit
from streamtok.jobs.parts.part import missing_parts, run_parts

from ...cli.test_cli import run
from ...long import crash_scale
from .conftest import make


def test_bad_text_stops_only_its_part(text):
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


def test_drivers_that_are_killed_go_on(monkeypatch):
    monkeypatch.setattr(crash_scale, "MOST", 2)
    assert crash_scale.one_round(2)["kills"]


def test_shares_of_the_command_line(text):
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
