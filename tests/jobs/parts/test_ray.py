"""Parts on a real Ray cluster on this machine: killed nodes, bad text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

import streamtok.ray
from streamtok import PlanError
from streamtok.jobs.parts.part import missing_parts, run_parts

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


def test_the_files_are_those_of_one_process(cluster, text):
    made, other = make(text), make(text, "other")
    seen = []
    totals = streamtok.ray.encode(made, cluster.address, advance=lambda n, _: seen.append(n))
    assert sorted(seen) == list(range(len(made)))
    run_parts(other, range(len(other)))
    assert contents(made) == contents(other)
    assert totals == streamtok.commit(other)
    assert streamtok.ray.encode(made, cluster.address) == totals  # nothing is left to do


def test_a_node_that_is_killed(cluster, text):
    made, other = make(text), make(text, "other")
    # To the head: Ray stops a process whose own node is killed.
    ray.init(address=cluster.address, log_to_driver=False)
    node = cluster.add_node(num_cpus=1)
    seen = []

    def advance(number, totals):
        seen.append(number)
        if len(seen) == 2:
            cluster.remove_node(node, allow_graceful=False)

    try:
        streamtok.ray.encode(made, cluster.address, advance=advance)
    finally:
        ray.shutdown()
    run_parts(other, range(len(other)))
    assert contents(made) == contents(other)


def test_bad_text_stops_only_its_part(cluster, text):
    data = bytearray(text.read_bytes())
    data[25_000:25_001] = b"\xff"
    text.write_bytes(data)
    made = make(text)
    with pytest.raises(PlanError, match="byte 25000 is not UTF-8"):
        streamtok.ray.encode(made, cluster.address)
    assert list(missing_parts(made)) == [2]
