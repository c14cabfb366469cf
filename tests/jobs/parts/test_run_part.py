"""Parts: what they hold is what one process makes of everything, wherever the cuts are."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamtok
from streamtok import Plan, PlanError, commit, plan, run_part
from streamtok.cli.main import main
from streamtok.engines.template import Template

from ...nasty import TEXTS

ENC = streamtok.get_encoding("gpt2")


def ids_of(made: streamtok.Plan) -> list[int]:
    """Run the parts in any order, commit, and read the ids."""
    numbers = list(range(len(made)))
    random.Random(5).shuffle(numbers)
    for number in numbers:
        run_part(made, number)
    commit(made)
    return np.concatenate([np.fromfile(made.path(i), np.uint16) for i in range(len(made))]).tolist()


def texts() -> list[bytes]:
    chosen = random.Random(9).sample([one for one in TEXTS if is_text(one)], 20)
    others = [" " * 3000, "word " * 700, "no" * 2000, "", "x", "日本語。" * 300]
    return [b"\n".join(chosen), *(one.encode() for one in others)]


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


KINDS: dict[str, dict[str, Any]] = {
    "lines": {"lines": True},
    "delimiter": {"delimiter": b"--x"},
    "jsonl": {"jsonl": "text"},
}


def test_what_the_vocabulary_puts_around_a_text(tmp_path: Path) -> None:
    template = Template((1, 2), (3,))
    mine = streamtok.Encoding(
        "mine", pat_str=ENC._pat_str, mergeable_ranks=ENC.definition.vocabulary, special_tokens={},
        template=template,
    )  # fmt: skip
    vocabulary = tmp_path / "mine.streamtok"
    streamtok.formats.save_packed(mine, vocabulary)
    path = tmp_path / "in"
    path.write_text("some text to cut, " * 30)
    made = plan(
        path, tmp_path / "out", encoding=str(vocabulary), part_size=100, format="u16",
        add_special_tokens=True,
    )  # fmt: skip
    assert ids_of(made) == mine.encode(path.read_text(), add_special_tokens=True)
    out = str(tmp_path / "cli")
    args = ["-e", str(vocabulary), str(path), "--format", "u16", "-o", out, "--part-size", "100"]
    assert main(["encode", "-q", *args, "--task", "0/1", "--add-special-tokens"]) == 0
    assert Plan.load(out).job.as_json() == made.job.as_json()


def test_parquet_in_row_groups(tmp_path: Path) -> None:
    rows = [f"row number {i}" * (i % 5 + 1) for i in range(200)]
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": rows}), path, row_group_size=30)
    for part_size in (150, 900, 1 << 20):
        made = plan(
            path, tmp_path / f"out{part_size}", encoding="gpt2", part_size=part_size, parquet="text"
        )
        assert ids_of(made) == [id for row in rows for id in ENC.encode(row)]
    assert len(made) == 1


def test_a_finished_part_is_not_done_again(tmp_path: Path) -> None:
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


def test_a_commit_needs_all_parts(tmp_path: Path) -> None:
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
    with pytest.raises(PlanError, match="says something else"):
        commit(made)


def test_an_input_that_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("one two three " * 50)
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=100)
    run_part(made, 0)
    path.write_text("one two three " * 51)
    with pytest.raises(PlanError, match="has changed since the plan was made"):
        run_part(made, 1)
    path.unlink()
    with pytest.raises(PlanError, match="is gone since the plan was made"):
        run_part(made, 1)
    assert not os.path.exists(made.path(1))
    run_part(made, 0)  # is done, and needs its input no more


def test_bad_text_names_its_place(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"good text " * 30 + b"\xff" + b" good text" * 30)
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=200)
    with pytest.raises(PlanError, match=r"in, part 1 \(bytes 200 … 400\): byte 300 is not UTF-8"):
        run_part(made, 1)
    assert os.listdir(tmp_path / "out") == []
    run_part(made, 0)
    path.write_text("a <|endoftext|>")
    made = plan(path, tmp_path / "other", encoding="gpt2")
    with pytest.raises(PlanError, match=r"the disallowed special token .* at byte 2"):
        run_part(made, 0)


def test_a_file_of_another_plan(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("one two three " * 50)
    run_part(plan(path, tmp_path / "out", encoding="gpt2", part_size=100), 0)
    other = plan(path, tmp_path / "out", encoding="gpt2", part_size=101)  # as many parts
    with pytest.raises(PlanError, match="is the file of another plan"):
        run_part(other, 0)
