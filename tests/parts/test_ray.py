"""Parts on a real Ray cluster on this machine: killed nodes, bad text, the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

import streamtok.ray
from streamtok import PlanError, Trainer
from streamtok.parts.commit import missing_parts
from streamtok.parts.part import Record
from streamtok.parts.workers import run_parts
from streamtok.ray.count_tasks import count_on_ray

from ..cli.test_cli import run
from .conftest import contents, make

ROOT = Path(streamtok.__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), known] if known else [str(ROOT)])
    quiet = {"num_cpus": 1, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=quiet)
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()
        if known is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = known


def test_the_files_are_those_of_one_process(cluster: Any, text: Path) -> None:
    made, other = make(text), make(text, "other")
    seen: list[Record] = []
    totals = streamtok.ray.encode(made, cluster.address, max_in_flight=2, advance=seen.append)
    assert sorted(record.part for record in seen) == list(range(len(made)))
    run_parts(other, range(len(other)), 1)
    assert contents(made) == contents(other)
    assert totals == streamtok.commit(other)
    assert streamtok.ray.encode(made, cluster.address) == totals  # nothing is left to do


def test_a_node_that_is_killed(cluster: Any, text: Path) -> None:
    made, other = make(text), make(text, "other")
    node = cluster.add_node(num_cpus=1)
    seen: list[Record] = []

    def advance(record: Record) -> None:
        seen.append(record)
        if len(seen) == 2:
            cluster.remove_node(node, allow_graceful=False)

    streamtok.ray.encode(made, cluster.address, advance=advance)
    run_parts(other, range(len(other)), 1)
    assert contents(made) == contents(other)


def test_bad_text_stops_only_its_part(cluster: Any, text: Path) -> None:
    data = bytearray(text.read_bytes())
    data[25_000:25_001] = b"\xff"
    text.write_bytes(data)
    made = make(text)
    with pytest.raises(PlanError, match="byte 25000 is not UTF-8"):
        streamtok.ray.encode(made, cluster.address)
    assert list(missing_parts(made)) == [2]


@pytest.mark.parametrize("limit", [None, 1])
def test_counts_are_those_of_one_trainer(cluster: Any, text: Path, limit: int | None) -> None:
    other = text.with_name("other.txt")
    other.write_text("low lower lowest " * 2000)
    paths, sizes = [str(text), str(other)], list[int]()
    made = count_on_ray(
        paths,
        "gpt2",
        cluster.address,
        part_size=10_000,
        advance=lambda size, _: sizes.append(size),
        max_in_flight=limit,
    )
    whole = Trainer("gpt2")
    for path in paths:
        whole.update_file(path)
    assert list(made.piece_counts().items()) == list(whole.piece_counts().items())
    assert made.bytes_in == whole.bytes_in == sum(sizes)
    assert len(sizes) > 10
    ties: Any = ("raw", "hf", "first")
    for tie in ties:
        assert made.merges(280, tie=tie) == whole.merges(280, tie=tie)


def test_counting_on_a_node_that_is_killed(cluster: Any, text: Path) -> None:
    node = cluster.add_node(num_cpus=1)
    seen: list[int] = []

    def advance(size: int, skipped: int) -> None:
        seen.append(size)
        if len(seen) == 2:
            cluster.remove_node(node, allow_graceful=False)

    made = count_on_ray([str(text)], "gpt2", cluster.address, part_size=8000, advance=advance)
    whole = Trainer("gpt2")
    whole.update_file(text)
    assert list(made.piece_counts().items()) == list(whole.piece_counts().items())


def test_the_command_line_trains(cluster: Any, text: Path) -> None:
    args = ["train", "--force", "--vocab-size", "280", "--pattern", "gpt2", str(text)]
    one, two = text.with_name("one.tiktoken"), text.with_name("two.tiktoken")
    assert run(*args, "-o", str(one)).returncode == 0
    done = run(*args, "-o", str(two), "--part-size", "10000", "--ray", cluster.address)
    assert done.returncode == 0, done
    assert one.read_bytes() == two.read_bytes()
    for more, what in ((["--workers", "2"], b"--ray or --workers"), (["--prune"], b"with --ray")):
        done = run(*args, "-o", str(two), "--ray", "local", *more)
        assert done.returncode == 2
        assert what in done.stderr
