"""How `benchmarks.compare` takes samples: who, how often, and what is no sample."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import streamtok

sys.path.append(str(Path(__file__).resolve().parents[2]))  # last: an installed one goes first
from benchmarks import assets, corpus, goals, peers, sampling, tables, train, two_cores, worker
from streamtok.patterns.named import find_pattern

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
    assert [who[1] for who in results.who("threads")] == [*two_cores.THREADED, two_cores.COMMAND]
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


@pytest.mark.parametrize(
    "kind", [kind for kind in sampling.KINDS if kind not in ("threads", "train")]
)
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
    task |= {"file": str(big), "endless": 300_000}
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


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """Small texts for processes, which would each make them anew."""
    small = {name: corpus.load(name, 20_000) for name in corpus.NAMES}
    for name, data in small.items():
        (tmp_path / f"{name}.txt").write_bytes(data)
    monkeypatch.setenv(corpus.VARIABLE, str(tmp_path))
    return tmp_path


def threads_task(folder, way):
    about = {"peer": "streamtok", "encoding": "r50k_base", "assets": str(folder)}
    return about | {"mode": way, "limit": None}


@pytest.mark.parametrize("way", ["encode_batch", "encode_batch, cold", "Trainer.update"])
def test_what_two_threads_reach(texts, monkeypatch, way):
    monkeypatch.setattr(two_cores, "cores", lambda: 2)
    monkeypatch.setattr(two_cores, "_TURNS", 1)
    got = two_cores.threads(threads_task(texts, way))
    assert set(got) == set(sample("threads", goals.NUMPY, 1))
    assert all(figure > 0 for figure in got.values())


def test_threads_must_give_the_same_ids(texts, monkeypatch):
    spans = iter("abcde")

    def together(children, n):
        return two_cores._Span(1.0, [next(spans)], 1)

    monkeypatch.setattr(two_cores, "cores", lambda: 2)
    monkeypatch.setattr(two_cores, "_together", together)
    monkeypatch.setattr(two_cores, "_children", lambda *_: dict.fromkeys(two_cores._PARTS))
    monkeypatch.setattr(two_cores, "_end", lambda _: None)
    with pytest.raises(ValueError, match="another result"):
        two_cores.threads(threads_task(texts, "encode_batch"))


@pytest.mark.parametrize("way", ["encode_batch, cold", "encode_batch"])
def test_cold_is_the_first_call_of_a_process(texts, monkeypatch, way):
    """Warm: three processes in all. Cold: new ones for each step of each turn."""
    started = []
    children = two_cores._children

    def counted(*arguments):
        made = children(*arguments)
        started.extend(child.pid for child in made.values())
        return made

    monkeypatch.setattr(two_cores, "cores", lambda: 2)
    monkeypatch.setattr(two_cores, "_TURNS", 1)
    monkeypatch.setattr(two_cores, "_children", counted)
    two_cores.threads(threads_task(texts, way))
    assert len(set(started)) == (6 if way.endswith("cold") else 3)


def test_a_process_that_ends_is_no_sample(texts):
    with pytest.raises(ValueError, match="a process ended with 1"):
        two_cores._children(threads_task(texts, "encode_batch") | {"encoding": "none"})


def test_collect(monkeypatch):
    """All that a run does, with streamtok alone on one small text."""
    modes = {name: flat for name, flat in peers.Streamtok.modes.items() if "stream" not in name}
    monkeypatch.setattr(peers.Streamtok, "modes", modes)
    found = sampling.collect(
        ["r50k_base"], {}, ["logs"], ["text", "load"], 1, 60_000, 10**6, 10**6, ["streamtok"]
    )
    assert found["encodings"]["r50k_base"]["notes"] == []
    data = json.loads(json.dumps(found))
    assert [len(x["records"]) for x in data["encodings"].values()] == [len(modes) + 1]
    text = "\n".join(tables.details(data))
    assert re.search(r"\| streamtok `count` \| \d+ / \*\*\d+\*\* / \d+ \|", text)
    text = "\n".join(goals.table(tables.results_of(data)))
    row = r"\| `count` ÷ `encode_to_numpy`, unseen, mean \| ≥ 1 \| \S+ \(logs \d+\.\d+\) \|"
    assert re.search(row, text)


def test_models_are_files_or_folders_of_them(tmp_path):
    found = {}
    for name in ("llama", "qwen"):
        (tmp_path / name).mkdir()
        found[name] = tmp_path / name / "tokenizer.json"
        found[name].write_text(name)
    assert assets.models([tmp_path / "llama", found["qwen"]]) == found
    with pytest.raises(FileNotFoundError, match=r"give a tokenizer\.json"):
        assets.models([tmp_path])
    (tmp_path / "assets").mkdir()
    assets.copy_models(tmp_path / "assets", found)
    assert peers.model_file(tmp_path / "assets", "qwen").read_text() == "qwen"
    assert peers.model_file(tmp_path / "assets", "cl100k_base") is None


def test_a_model_is_encoded(tmp_path):
    """The reference's vocabulary as a tokenizer.json: loaded as a model, with the same ids.

    The pattern is Llama 3's, which cuts as cl100k_base's does: some peers know patterns by heart.
    """
    file = tmp_path / "mine" / "tokenizer.json"
    file.parent.mkdir()
    given = streamtok.get_encoding("cl100k_base")
    file.write_text(assets._tokenizer_json(given, find_pattern("llama3")))
    text = corpus.load("multilingual", 20_000).decode()
    for peer in peers.installed():
        if peer.takes("mine"):
            mine = peer("mine", tmp_path)
            for name in peer.modes:
                if name != "count":
                    ids = mine.mode(name)(mine.prepare(name, text))
                    assert peers.as_array(ids).tolist() == given.encode(text), (peer.name, name)
    assert {"streamtok"} <= {peer.name for peer in peers.installed() if peer.takes("mine")}
    assert not peers.Tiktoken.takes("mine")


def test_a_sample_that_fails_says_why(tmp_path):
    run = sampling.Run.__new__(sampling.Run)
    run.encoding, run.settings, run.speeds = "no_such_encoding", {"assets": str(tmp_path)}, {}
    run.taken = run.taken_again = 0
    assert "no_such_encoding" in run.sample("load", goals.LIST)


def test_command_on_one_core_and_on_two(tmp_path, monkeypatch):
    monkeypatch.setattr(two_cores, "_COMMAND_TURNS", 1)
    file = tmp_path / "text"
    file.write_bytes(corpus.load("logs", 50_000))
    task = {"encoding": "r50k_base", "file": str(file)}
    if two_cores.cores() < 2:
        with pytest.raises(ValueError, match="one core here"):
            two_cores.command(task)
        return
    got = two_cores.command(task)
    assert set(got) == set(sample("command", goals.LIST, 1))
    assert all(figure > 0 for figure in got.values())


def test_a_trainer_is_a_sample(tmp_path):
    folder = train.write_texts(tmp_path / "texts", 20_000)
    run = sampling.Run.__new__(sampling.Run)
    run.encoding, run.settings, run.speeds = "r50k_base", {"train": str(folder)}, {}
    got = run.sample("train", ("streamtok", "train"), corpus="300")
    assert set(got) == set(sample("train", goals.LIST, 1))
    assert got["tokens"] == 300
    assert "KeyError" in run.sample("train", ("nobody", "train"), corpus="300")


def test_interrupted_samples_are_taken_again_but_not_all(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(sampling, "was_interrupted", lambda result: True)
    ran = []

    def run_process(command, **_):
        ran.append(json.loads(command[-1]))
        return subprocess.CompletedProcess(command, 0, "{}", "")

    monkeypatch.setattr(subprocess, "run", run_process)
    run = sampling.Run.__new__(sampling.Run)
    run.encoding, run.settings, run.speeds = "r50k_base", {"assets": str(tmp_path)}, {}
    run.taken = run.taken_again = 0
    for _ in range(100):
        assert run.sample("text", goals.NUMPY) == {}
    assert 120 <= len(ran) <= 130
    ran.clear()
    monkeypatch.setattr(sampling, "was_interrupted", lambda result: len(ran) % 2 == 1)
    run.taken, run.taken_again = 100, 0
    run.sample("text", goals.NUMPY)
    assert len(ran) == 2
