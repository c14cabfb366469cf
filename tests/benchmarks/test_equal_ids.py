"""The benchmarks time nothing whose ids differ: each place that compares them finds another one."""

from __future__ import annotations

import copy
import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import streamtok

sys.path.append(str(Path(__file__).resolve().parents[2]))  # last: an installed one goes first
from benchmarks import (
    answers,
    command_line,
    compare,
    corpus,
    peers,
    sampling,
    tables,
    turns,
    worker,
)
from streamtok.patterns.named import find_pattern


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rival is told in the environment is taken back."""
    for name in ("TIKTOKEN_CACHE_DIR", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "")


def timed(digest: str | None, tokens: int = 3) -> dict[str, Any]:
    return {"s": 1.0, "cpu_s": 1.0, "tokens": tokens, "mb_s": 1.0, "digest": digest}


def test_equality_is_of_ids_or_of_their_number() -> None:
    one = {"a": timed("x")}
    assert sampling.different(one, one) == []
    assert sampling.different({"a": timed("y")}, one) == ["a"]
    assert sampling.different({"a": timed(None)}, one) == []
    assert sampling.different({"a": timed(None, tokens=4)}, one) == ["a"]


@pytest.mark.parametrize("phase", ["cold", "unseen"])
def test_what_is_timed_is_equal(phase: str) -> None:
    """The second turn begins with the other half: its cold ids are the unseen ones of the first."""
    records = [
        {
            "kind": "text", "text": "code", "peer": peer, "mode": "encode", "turn": turn,
            "got": {"cold": timed(f"half {turn}"), "unseen": timed(f"half {1 - turn}")},
        }
        for turn, peer in itertools.product((0, 1), ("tiktoken", "gigatoken"))
    ]  # fmt: skip
    run = sampling.Run.__new__(sampling.Run)
    run.judge, run.records = "tiktoken", copy.deepcopy(records)
    run.check()
    assert run.records == records
    run.records[3]["got"][phase]["digest"] = "another"
    run.check()
    assert [r["got"] for r in run.records if isinstance(r["got"], str)] == [
        "other ids than tiktoken"
    ]
    assert isinstance(run.records[3]["got"], str)


def test_a_wrong_mode_of_streamtok_fails_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    part = {"contenders": [("tiktoken", "encode")], "notes": ["iree `encode`: not timed"]}
    assert compare.say_who_is_equal({"encodings": {"a": part}}) == 0
    part["notes"].append("streamtok `encode`: not timed, not the ids of tiktoken on code")
    assert compare.say_who_is_equal({"encodings": {"a": part}}) == 1
    assert "not the ids of tiktoken on code" in capsys.readouterr().out


def test_a_run_compares_then_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a run does, with two modes on one small text, of which one gives other ids."""
    chosen = ("encode", "encode_to_numpy", "count")
    modes = {name: peers.PEERS[0].modes[name] for name in chosen}
    own = peers.PEERS[0]._replace(modes=modes)
    monkeypatch.setattr(peers, "PEERS", (own, *peers.PEERS[1:]))
    sample = sampling.Run.sample

    def changed(run: sampling.Run, kind: str, who: sampling.Who, **task: Any) -> Any:
        got = sample(run, kind, who, **task)
        if kind == "equal" and who[1] == "count":
            got["texts"]["logs"]["tokens"] += 1
        return got

    monkeypatch.setattr(sampling.Run, "sample", changed)
    found = sampling.collect(["r50k_base"], {}, ["logs"], ["text"], 1, 60_000, ["streamtok"])
    data = json.loads(json.dumps(found))
    part = data["encodings"]["r50k_base"]
    assert part["notes"] == ["streamtok `count`: not timed, not the ids of streamtok on logs"]
    assert [(r["kind"], r["mode"]) for r in part["records"]] == [
        ("text", "encode"),
        ("text", "encode_to_numpy"),
    ]
    text = "\n".join([*tables.report(data), *tables.short(data, "picture")])
    assert re.search(r"\| streamtok `encode` \| \d+ / \*\*\d+\*\* / \d+ \|", text)


def test_two_threads_must_give_the_same_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(worker.THREADED, "it", lambda encoding, docs, text, n: [[n]])
    with pytest.raises(ValueError, match="another result"):
        worker._threads(None, "it", 1000)


def test_modes_and_models_give_our_ids(tmp_path: Path) -> None:
    """The reference's vocabulary as a tokenizer.json: loaded as a model, with the same ids.

    The pattern is Llama 3's, which cuts as cl100k_base's does: some peers know patterns by heart.
    """
    file = tmp_path / "mine" / "tokenizer.json"
    file.parent.mkdir()
    given = streamtok.get_encoding("cl100k_base")
    peers.write_tokenizer_json(file, given, find_pattern("llama3"))
    assert peers.models([file.parent]) == {"mine": file}
    text = corpus.load("multilingual", 20_000).decode()
    expected = given.encode(text)
    takes = [peer for peer in peers.installed() if peer.takes("mine") and not peer.folder]
    assert {"streamtok", "tokenizers"} <= {peer.name for peer in takes}
    for peer in takes:
        mine = peer("mine", tmp_path)
        for name in peer.modes:
            found = mine.mode(name)(mine.prepare(name, text))
            if name == "count":
                assert found == len(expected)
            else:
                assert peers.as_array(found).tolist() == expected, (peer.name, name)


def test_a_file_of_ids_is_compared_with_its_text(tmp_path: Path) -> None:
    path, out = tmp_path / "text", tmp_path / "ids"
    path.write_bytes(corpus.load("logs", 50_000))
    ids = streamtok.get_encoding("cl100k_base").encode_to_numpy(path.read_bytes()).astype("<u4")
    out.write_bytes(ids.tobytes())
    assert "are tiktoken's" in command_line.check(path, out, "cl100k_base")
    out.write_bytes(ids[:-1].tobytes())
    with pytest.raises(SystemExit, match="less than the file"):
        command_line.check(path, out, "cl100k_base")
    ids[7] += 1
    out.write_bytes(ids.tobytes())
    with pytest.raises(SystemExit, match="do not decode to the file"):
        command_line.check(path, out, "cl100k_base")


def test_all_answers_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = list(answers.measure(answers.make_text(20_000), "r50k_base", 1))
    assert len(rows) >= 4  # more with other splitters installed
    assert any(what.startswith("chunks") and wrong for what, *_, wrong in rows)
    monkeypatch.setattr(streamtok.Encoding, "fits", lambda *_: None)
    with pytest.raises(SystemExit, match="the answers are not the same"):
        list(answers.measure("a", "r50k_base", 1))


def test_who_gives_another_answer_is_not_timed() -> None:
    calls: dict[str, Any] = {"judge": lambda: 1, "streamtok": lambda: 1, "other": lambda: 2}
    assert list(turns.only_equal(calls)) == ["judge", "streamtok"]
    with pytest.raises(SystemExit, match="not the same"):
        turns.only_equal({**calls, "streamtok": lambda: 2})
    with pytest.raises(ZeroDivisionError):
        turns.only_equal({**calls, "streamtok": lambda: 1 / 0})
    assert list(turns.only_equal({**calls, "other": lambda: 1 / 0})) == ["judge", "streamtok"]
