"""Plans as values: what they hold, how they are saved, what they refuse."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import streamtok
from streamtok import Plan, PlanError, plan


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("some words, and others.\n" * 100)
    return path


def make(text: Path, **options: Any) -> Plan:
    settings = {"encoding": "gpt2", "format": "u16", "part_size": 500} | options
    return plan(text, text.parent / "out", **settings)


def test_the_parts_cover_the_input(text):
    made = make(text)
    size = text.stat().st_size
    assert [part.start for part in made] == list(range(0, size, 500))
    assert [part.stop for part in made] == [*range(500, size, 500), size]
    assert made.path(3).endswith("part-000003-of-000005.u16")
    with pytest.raises(IndexError, match="parts 0 … 4, not 5"):
        made[5]


def test_it_is_the_same_whoever_makes_it(text):
    made = make(text)
    assert make(text) == made
    assert make(text).digest == made.digest
    elsewhere = plan(text, text.parent / "elsewhere", encoding="gpt2", part_size=500)
    assert elsewhere.job == made.job != make(text, part_size=501).job
    assert elsewhere != made
    assert make(text, part_size=501) != made
    assert make(text, append=50256) != made
    assert pickle.loads(pickle.dumps(made)) == made
    assert make(text, encoding=streamtok.get_encoding("gpt2")) == made


def test_saved_and_loaded(text):
    made = make(text, delimiter=b"\x00\xff", special="allow")
    path = made.save()
    assert Plan.load(path) == made == Plan.load(made.output)
    assert Plan.load(path).job.as_json() == made.job.as_json()
    assert made.save() == path  # again: the job goes on


def test_names_that_are_not_utf8(tmp_path):
    path = tmp_path / "caf\udce9.txt"
    try:
        path.write_text("text")
    except OSError:  # a file system that has no such names
        return
    made = plan(path, tmp_path / "out", encoding="gpt2")
    assert Plan.load(made.save()) == made
    assert streamtok.run_part(made, 0).tokens == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"streamtok": 1', '"streamtok": 9'),
        ('"part_size": 500', '"part_size": "500"'),
        ('"part_size": 500', '"part_size": 0'),
        ('"inputs"', '"imputs"'),
        ('"errors"', '"eros"'),
        (" 2400,", ' "2400",'),
        (", true]]", ", true, 1]]"),
        ("{", "["),
    ],
)
def test_damaged(text, old, new):
    path = Path(make(text).save())
    damaged = path.read_text().replace(old, new, 2)
    assert damaged != path.read_text()
    path.write_text(damaged)
    with pytest.raises(PlanError, match="is not a plan, or damaged"):
        Plan.load(str(path))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"part_size": 0}, ValueError, "part_size must be a positive number"),
        ({"part_size": True}, ValueError, "part_size must be a positive number"),
        ({"parts": 3}, TypeError, "'parts' is not an option of a plan"),
        ({"lines": True, "jsonl": "text"}, ValueError, "only one of lines"),
        ({"shard_tokens": 5}, ValueError, "cannot use shard_tokens"),
        ({"add_special_tokens": True, "append": 5}, ValueError, "not both"),
        ({"delimiter": b""}, ValueError, "delimiter is empty"),
        ({"errors": "ignore"}, ValueError, "ignore"),
        ({"encoding": "gpt3"}, ValueError, "gpt3"),
        ({"format": "pdf"}, ValueError, r"format must be one of u16, .*, not 'pdf'"),
        ({"encoding": "cl100k_base"}, ValueError, "u16 holds ids up to 65535"),
    ],
)
def test_refused(text, options, error, message):
    with pytest.raises(error, match=message):
        make(text, **options)


def test_inputs_that_are_refused(text):
    with pytest.raises(PlanError, match="at least one input"):
        plan([], "out", encoding="gpt2")
    with pytest.raises(FileNotFoundError):
        plan(["no such file"], "out", encoding="gpt2")
    with pytest.raises(PlanError, match="not a regular file"):
        plan([text.parent], "out", encoding="gpt2")


def test_an_encoding_without_a_name_needs_a_file(text, tmp_path):
    known = streamtok.get_encoding("gpt2")
    mine = streamtok.Encoding(
        "mine",
        pat_str=known._pat_str,
        mergeable_ranks=known.definition.vocabulary,
        special_tokens={},
    )
    with pytest.raises(PlanError, match="save it to a file"):
        make(text, encoding=mine)
    path = tmp_path / "mine.tiktoken"
    streamtok.formats.save_tiktoken(mine, path)
    made = make(text, encoding=f"{path}@gpt2")
    assert streamtok.run_part(made, 0).tokens > 0
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:300]))
    streamtok.jobs.job._opened.cache_clear()
    with pytest.raises(PlanError, match="is different here"):
        streamtok.run_part(made, 1)


def test_what_cannot_be_cut_is_one_part(tmp_path, text):
    import gzip

    packed = tmp_path / "in.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    assert len(make(packed, part_size=20)) == 1
    assert len(make(text, format="jsonl")) == 1  # a record is a document
    assert len(make(text, format="jsonl", lines=True)) > 1
    assert len(make(text, delimiter=b"aa")) == 1  # it overlaps with itself in "aaa"
    assert len(make(text, delimiter=b"ab")) > 1
    empty = tmp_path / "empty"
    empty.touch()
    assert [tuple(part)[2:] for part in make(empty)] == [(0, 0)]
