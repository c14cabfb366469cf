"""Parts: what they hold is what one process makes of everything, wherever the cuts are."""

import json
import os

import pytest

from streamtok import PlanError, commit, plan, run_part
from streamtok.jobs.parts.part import missing_parts, run_parts
from streamtok.jobs.stores import places

from ...cli.test_cli import run
from ...long import crash_scale
from .conftest import make


def test_a_finished_part_is_not_done_again(tmp_path):
    path = tmp_path / "in"
    path.write_text("one two three " * 50)
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=200)
    record = run_part(made, 1)
    before = os.stat(made.path(1))
    assert run_part(made, 1) == record
    assert os.stat(made.path(1)).st_mtime_ns == before.st_mtime_ns
    os.remove(made.path(1))
    assert run_part(made, 1) == record  # its file is gone: it is
    assert os.path.exists(made.path(1))


def test_a_commit_needs_all_parts(tmp_path):
    path = tmp_path / "in"
    path.write_text("one two three " * 50)
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=100)
    with pytest.raises(PlanError, match="these parts are missing: 0, 1, 2, 3, 4, 5, 6"):
        commit(made)
    for number in range(1, len(made)):
        run_part(made, number)
    with pytest.raises(PlanError, match=r"these parts are missing: 0$"):
        commit(made)
    run_part(made, 0)
    commit(made)
    manifest = tmp_path / "out" / "manifest.jsonl"
    first = manifest.read_bytes()
    commit(made)
    assert manifest.read_bytes() == first
    rows = [json.loads(line) for line in first.splitlines()]
    assert rows[0]["tokens"] == sum(row["tokens"] for row in rows[1:])
    assert [row["first_token"] for row in rows[1:3]] == [0, rows[1]["tokens"]]
    manifest.write_bytes(first + b"\n")
    with pytest.raises(PlanError, match="exists with other contents"):
        commit(made)


def test_a_file_of_another_plan(tmp_path):
    path = tmp_path / "in"
    path.write_text("one two three " * 50)
    run_part(plan(path, tmp_path / "out", encoding="gpt2", part_size=100), 0)
    other = plan(path, tmp_path / "out", encoding="gpt2", part_size=101)  # as many parts
    with pytest.raises(PlanError, match="is the file of another plan"):
        run_part(other, 0)


# In a folder and in a store


def test_an_input_that_has_changed(place):
    path = f"{place}/in"
    places.write(path, b"one two three " * 50)
    made = plan(path, f"{place}/out", encoding="gpt2", part_size=100)
    run_part(made, 0)
    places.write(path, b"one two three."[::-1] * 50)  # of the same size
    with pytest.raises(PlanError, match="has changed since the plan was made"):
        run_part(made, 1)
    places.remove(path)
    with pytest.raises(PlanError, match="was removed after the plan was made"):
        run_part(made, 1)
    assert not places.exists(made.path(1))
    run_part(made, 0)  # is done, and needs its input no more


def test_bad_text_names_its_place(place):
    path = f"{place}/in"
    places.write(path, b"good text " * 30 + b"\xff" + b" good text" * 30)
    made = plan(path, f"{place}/out", encoding="gpt2", part_size=200)
    with pytest.raises(PlanError, match=r"in, part 1 \(bytes 200 … 400\): byte 300 is not UTF-8"):
        run_part(made, 1)
    assert places.names_in(f"{place}/out") == []
    run_part(made, 0)
    places.write(path, b"a <|endoftext|>")
    made = plan(path, f"{place}/other", encoding="gpt2")
    with pytest.raises(PlanError, match=r"the disallowed special token .* at byte 2"):
        run_part(made, 0)


def test_another_plan_is_refused(place):
    path, out = f"{place}/in", f"{place}/out"
    places.write(path, b"some words, and others.\n" * 100)
    where = plan(path, out, encoding="gpt2", part_size=500).save()
    assert plan(path, out, encoding="gpt2", part_size=500).save() == where
    said = "another plan: it has other inputs, or parts of another size"
    with pytest.raises(PlanError, match=said):
        plan(path, out, encoding="gpt2", part_size=400).save()
    for name in ("in", "other"):
        places.write(f"{place}/{name}", b"other text")
        with pytest.raises(PlanError, match="it has other inputs"):
            plan(f"{place}/{name}", out, encoding="gpt2", part_size=500).save()
    before = places.names_in(place)
    with pytest.raises(PlanError, match="holds other files"):
        plan(path, place, encoding="gpt2").save()
    assert places.names_in(place) == before


# Jobs


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
