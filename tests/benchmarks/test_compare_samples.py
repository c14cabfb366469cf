"""How `benchmarks.compare` takes samples: who, how often, and what is no sample."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))  # last: an installed one goes first
from benchmarks import corpus, goals, peers, sampling, tables, worker

from ..samples import sample, samples_of_all


@pytest.fixture
def data():
    return samples_of_all()


def test_who_takes_part(data):
    results = tables.results_of(data)["cl100k_base"]
    once = results.who("once")
    assert ("fastokens", "encode_batch_flat") in once
    assert ("gigatoken", "encode") not in once  # 100 of 150: not nearly the fastest
    assert {who[1] for who in results.who("calls") if who[0] == "streamtok"} == {
        "encode",
        "encode_to_numpy",
        "stream, 64 KiB",
    }
    assert [who[1] for who in results.who("threads")] == [*worker.THREADED, sampling.COMMAND]
    assert len(results.by[("text", "code", "tiktoken", "encode")]) == 2
    assert len(results.by[("hard", "CJK", "tiktoken", "encode")]) == 1


def test_equality_is_of_ids_or_of_their_number():
    one = {"a": {"tokens": 3, "digest": "x"}}
    assert sampling.different(one, one) == []
    assert sampling.different({"a": {"tokens": 3, "digest": "y"}}, one) == ["a"]
    assert sampling.different({"a": {"tokens": 3, "digest": None}}, one) == []
    assert sampling.different({"a": {"tokens": 4, "digest": None}}, one) == ["a"]


@pytest.mark.parametrize("phase", ["cold", "unseen"])
def test_what_is_timed_is_equal(data, phase):
    """The second turn begins with the other half: its cold ids are the unseen ones of the first."""
    run = sampling.Run.__new__(sampling.Run)
    run.judge, run.records = "tiktoken", data["encodings"]["r50k_base"]["records"]
    texts = [r for r in run.records if r["kind"] == "text" and r["text"] == "code"]
    for record in texts:
        for i, name in enumerate(("cold", "unseen")):
            record["got"][name]["digest"] = f"half {(record['turn'] + i) % 2}"
        if record["mode"] == "count":
            record["got"]["cold"]["digest"] = record["got"]["unseen"]["digest"] = None
    run.check("text")
    assert not [r for r in texts if isinstance(r["got"], str)]
    wrong = next(r for r in texts if r["peer"] == "gigatoken" and r["turn"] == 1)
    wrong["got"][phase]["digest"] = "another"
    run.check("text")
    assert [r for r in texts if isinstance(r["got"], str)] == [wrong]
    assert wrong["got"] == "other ids than tiktoken"
    assert "| other ids than tiktoken |" in "\n".join(tables.details(data))


def test_a_long_stream_has_one_mode_of_each_peer_and_equal_ids(data):
    results = tables.results_of(data)["cl100k_base"]
    assert results.who("steady") == [
        ("streamtok", "encode_to_numpy"),
        ("tiktoken", "encode_to_numpy"),
        ("gigatoken", "encode"),
        ("fastokens", "encode_batch_flat"),
    ]
    run = sampling.Run.__new__(sampling.Run)
    run.judge, run.records = "tiktoken", data["encodings"]["r50k_base"]["records"]
    steady = [r for r in run.records if r["kind"] == "steady" and r["text"] == "logs"]
    run.check("steady")
    assert not [r for r in steady if isinstance(r["got"], str)]
    wrong = next(r for r in steady if r["peer"] == "fastokens" and r["mode"] != "encode")
    wrong["got"]["steady"]["digest"] = "another"
    run.check("steady")
    assert [r for r in steady if isinstance(r["got"], str)] == [wrong]


@pytest.mark.parametrize(("size", "most"), [(10_000, 750_000), (50_000, 100), (50, 100)])
def test_consecutive_parts_are_in_order_and_whole_lines(size, most):
    data = corpus.load("logs", 50_000)[:size]
    parts = corpus.consecutive(data, 12, most)
    assert len(parts) == 12
    assert data.startswith(b"".join(parts))
    if size > 50:
        assert all(part.endswith(b"\n") or not part for part in parts[:-1])
        assert len(b"".join(parts)) >= min(12 * most, 0.9 * len(data))


def test_who_is_missing_is_said(data):
    assert not any("left out" in line for line in tables.summary(data, "x"))
    lines = list(tables.summary(data | {"missing": ["gigatoken", "splintr"]}, "x"))
    assert "Not installed, so left out: gigatoken, splintr." in lines


def test_interrupted_samples_are_known():
    assert sampling.was_interrupted({"cold": {"s": 2.0, "cpu_s": 1.0}, "peak_bytes": 1})
    assert not sampling.was_interrupted({"cold": {"s": 1.1, "cpu_s": 1.0}, "us": {"a": 1.0}})


# Taking samples


@pytest.mark.parametrize("kind", [kind for kind in sampling.KINDS if kind != "threads"])
def test_worker_gives_what_the_tables_show(kind, tmp_path, monkeypatch):
    """Each kind once, on little text, in this process."""
    monkeypatch.setattr(worker, "HARD_BYTES", 3000)
    monkeypatch.setattr(worker, "_CALL_BYTES", 10_000)
    monkeypatch.setattr(worker, "ENDLESS_WARM_UP", 1)
    monkeypatch.setattr(worker, "ENDLESS_BLOCK", 100_000)
    big = tmp_path / "big"
    big.write_bytes(corpus.load("logs", 50_000))
    peer = peers.Streamtok("r50k_base", tmp_path)
    task = {"corpus": "CJK" if kind == "hard" else "logs", "limit": 50_000, "swap": False}
    task |= {"mode": "decode" if kind == "decode" else "encode_to_numpy", "slow": True}
    task |= {"big": str(big), "endless": 300_000}
    got = worker._KINDS[kind](peer, peer.mode("encode_to_numpy"), task)
    expected = sample(kind, goals.NUMPY, 1)
    assert set(expected) - {"import_s", "load_s", "load_bytes"} == set(got)
    for name, figures in expected.items():
        if isinstance(figures, dict) and kind != "calls":
            assert set(figures) - set(got[name]) == set()
    if kind == "calls":
        assert set(got["us"]) == set(expected["us"])
    if kind == "once":
        assert got["once"]["bytes"] == big.stat().st_size
        assert got["once"]["tokens"] == peer.tokenizer.count(big.read_bytes())


def test_a_wrong_decoder_is_no_sample(tmp_path, monkeypatch):
    peer = peers.Streamtok("r50k_base", tmp_path)
    monkeypatch.setattr(peer, "decoder", lambda name: lambda ids: "something else")
    with pytest.raises(ValueError, match="another text: english"):
        worker._decode(peer, peer.mode("encode"), {"mode": "decode"})


@pytest.mark.parametrize("wrong", [False, True])
def test_threads_must_give_the_same_ids(tmp_path, monkeypatch, wrong):
    def run(tokenizer, documents, text, count):
        return [tokenizer.encode(documents[0]), [count if wrong else 0]]

    monkeypatch.setattr(worker, "_cores", lambda: 2)
    monkeypatch.setitem(worker.THREADED, "a way", run)
    peer = peers.Streamtok("r50k_base", tmp_path)
    task = {"mode": "a way", "limit": 20_000}
    if wrong:
        with pytest.raises(ValueError, match="other ids"):
            worker._threads(peer, peer.mode("encode"), task)
    else:
        assert set(worker._threads(peer, peer.mode("encode"), task)) == {"ratio", "mb_s"}


def test_collect():
    """All that a run does, with streamtok alone on one small text."""
    found = sampling.collect(
        ["r50k_base"], ["logs"], ["text", "load"], 1, 60_000, 10**6, 10**6, ["streamtok"]
    )
    assert found["encodings"]["r50k_base"]["notes"] == []
    data = json.loads(json.dumps(found))
    assert [len(x["records"]) for x in data["encodings"].values()] == [
        len(peers.Streamtok.modes) + 1
    ]
    text = "\n".join(tables.details(data))
    assert re.search(r"\| streamtok `count` \| \d+ / \*\*\d+\*\* / \d+ \|", text)
    text = "\n".join(goals.table(tables.results_of(data)))
    row = r"\| `count` ÷ `encode_to_numpy`, unseen, mean \| ≥ 1 \| \S+ \(logs \d+\.\d+\) \|"
    assert re.search(row, text)


def test_a_sample_that_fails_says_why(tmp_path):
    run = sampling.Run.__new__(sampling.Run)
    run.encoding, run.settings, run.speeds = "no_such_encoding", {"assets": str(tmp_path)}, {}
    run.taken = run.taken_again = 0
    assert "no_such_encoding" in run.sample("load", goals.LIST)


def test_command_on_one_core_and_on_two(tmp_path):
    file = tmp_path / "text"
    file.write_bytes(corpus.load("logs", 50_000))
    run = sampling.Run.__new__(sampling.Run)
    run.encoding, run.settings, run.speeds = "r50k_base", {"file": str(file)}, {}
    run.taken = run.taken_again = 0
    got = run.sample("command", ("streamtok", sampling.COMMAND))
    if isinstance(got, str):
        assert got == "ValueError: one core here"
    else:
        assert set(got) == {"ratio", "mb_s"}
        assert got["ratio"] > 0


def test_pairs():
    got = worker._of_pairs([[4.0, 2.0], [9.0, 3.0], [1.0, 1.0]], 10_000_000)
    assert got == {"ratio": 2.0, "mb_s": 10.0}


def test_interrupted_samples_are_taken_again_but_not_all(monkeypatch):
    monkeypatch.setattr(sampling, "was_interrupted", lambda result: True)
    ran = []

    def run_process(command, **_):
        ran.append(json.loads(command[-1]))
        return subprocess.CompletedProcess(command, 0, "{}", "")

    monkeypatch.setattr(subprocess, "run", run_process)
    run = sampling.Run.__new__(sampling.Run)
    run.encoding, run.settings, run.speeds = "r50k_base", {}, {}
    run.taken = run.taken_again = 0
    for _ in range(100):
        assert run.sample("text", goals.NUMPY) == {}
    assert 120 <= len(ran) <= 130
    ran.clear()
    monkeypatch.setattr(sampling, "was_interrupted", lambda result: len(ran) % 2 == 1)
    run.taken, run.taken_again = 100, 0
    run.sample("text", goals.NUMPY)
    assert len(ran) == 2
