"""Ask for samples: which contenders take part, in which order, how often.

Each sample is a process (`worker.py`), and the contenders take turns. `compare.py --json` writes
the records, and the tables are made from them.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from streamtok._core._testing import tier

from . import corpus, peers, train, turns
from .peers import Who
from .worker import THREADED, Sample

KINDS = ("text", "calls", "threads", "train")
_JUDGES = ("tiktoken", "tokenizers", "streamtok")  # tiktoken cannot read a model's file
_LONG_KINDS = ("threads", "train")  # half as many turns
_ENVIRONMENT = {
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OPENBLAS_NUM_THREADS": "1",  # NumPy's thread spins while the first text is encoded
}
_TIMEOUT = 180  # seconds for one sample
_SLOW = 5.0  # MB/s: slower contenders get one turn


class Run:
    """Samples of all contenders for one encoding."""

    def __init__(self, encoding: str, settings: dict[str, Any], chosen: list[peers.Peer]):
        """settings: common to all tasks (`limit`, names of files)."""
        self.encoding, self.settings = encoding, settings
        self.notes: list[str] = []
        self.speeds: dict[Who, float] = {}
        self.records: list[dict[str, Any]] = []
        self.contenders = self._equal_ones([peer for peer in chosen if peer.takes(encoding)])

    def sample(self, kind: str, who: Who, **task: Any) -> Sample | str:
        """Take one sample in a new process. Without a figure, return the reason as a str."""
        task |= {"kind": kind, "peer": who[0], "mode": who[1], "encoding": self.encoding}
        task |= self.settings | {"slow": self._is_slow(who)}
        environment = turns.environment(Path(self.settings["assets"]))
        environment[corpus.VARIABLE] = task["texts"]  # so that it need not make them
        module, timeout = "train", train.TIMEOUT
        if kind != "train":
            module, timeout = "worker", _TIMEOUT
            environment |= _ENVIRONMENT
        try:
            done = subprocess.run(
                [sys.executable, "-m", f"benchmarks.{module}", json.dumps(task)],
                check=False, cwd=turns.ROOT, env=environment,
                capture_output=True, text=True, timeout=timeout,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"> {timeout} s"
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return lines[-1][:120].replace("|", "/")  # it goes into a table
        result: Sample = json.loads(done.stdout.splitlines()[-1])
        return result

    def _equal_ones(self, chosen: list[peers.Peer]) -> list[Who]:
        """The contenders whose ids equal the reference's on all texts."""
        by_name = {peer.name: peer for peer in chosen}
        self.judge = next(name for name in _JUDGES if name in by_name)
        expected = self.sample("equal", (self.judge, by_name[self.judge].default()))
        if isinstance(expected, str):
            raise RuntimeError(f"{self.judge}: {expected}")
        equal = []
        for who in [(peer.name, mode) for peer in chosen for mode in peer.modes]:
            _progress(f"{self.encoding} equal: {' '.join(who)}")
            result = self.sample("equal", who)
            if isinstance(result, str):
                self.notes.append(f"{who[0]} `{who[1]}`: {result}")
            elif wrong := ", ".join(different(result["texts"], expected["texts"])):
                note = f"not timed, not the ids of {self.judge} on {wrong}"
                self.notes.append(f"{who[0]} `{who[1]}`: {note}")
            else:
                equal.append(who)
                self.speeds[who] = result["mb_s"]
        if not any(peer == "streamtok" for peer, _ in equal):
            raise RuntimeError(f"streamtok's ids are wrong: {self.notes}")
        return equal

    def take(self, kind: str, names: list[str], rounds: int) -> None:
        """Take records of one kind; each turn begins with a different contender."""
        texts = {"text": names, "train": list(map(str, train.SIZES))}.get(kind, [""])
        entrants = self.entrants(kind)
        if kind in _LONG_KINDS:
            rounds = max(1, rounds // 2)
        for turn in range(rounds):
            for text in texts:
                shift = turn * len(entrants) // rounds
                for who in entrants[shift:] + entrants[:shift]:
                    if turn and self._is_slow(who):
                        continue
                    _progress(f"{self.encoding} {kind} {text} turn {turn}: {' '.join(who)}")
                    got = self.sample(kind, who, corpus=text, swap=turn % 2 == 1)
                    record = {"kind": kind, "text": text, "peer": who[0], "mode": who[1]}
                    self.records.append(record | {"turn": turn, "got": got})
        if kind == "text":
            self.check()

    def check(self) -> None:
        """Remove samples of texts whose ids differ from the reference's."""
        texts = [r for r in self.records if r["kind"] == "text" and isinstance(r["got"], dict)]
        expected = {
            key: digest
            for record in texts
            if record["peer"] == self.judge
            for key, digest in _digests(record).items()
        }
        for record in texts:
            for key, digest in _digests(record).items():
                if digest != expected.get(key, digest):
                    record["got"] = f"other ids than {self.judge}"

    def _is_slow(self, who: Who) -> bool:
        if who[1] == "train":
            return who[0] in train.SLOW
        return self.speeds.get(who, _SLOW) < _SLOW

    def entrants(self, kind: str) -> list[Who]:
        return {
            "text": self.contenders,
            "calls": [who for who in self.contenders if who[1] not in peers.ONLY_FOR_TEXTS],
            "train": [(name, "train") for name in train.installed()],
            "threads": [("streamtok", way) for way in THREADED],
        }[kind]


def different(texts: dict[str, Sample], expected: dict[str, Sample]) -> list[str]:
    """Names of the texts whose ids differ, or their number, for a mode that only counts."""
    return [
        name
        for name, timed in texts.items()
        if timed["tokens"] != expected[name]["tokens"]
        or timed["digest"] not in (None, expected[name]["digest"])
    ]


def _digests(record: dict[str, Any]) -> dict[tuple[str, bool], str]:
    """(text, which half of it) → digest of the ids, except for modes that only count."""
    return {
        (record["text"], (record["turn"] + i) % 2 == 1): digest
        for i, phase in enumerate(("cold", "unseen"))
        if (digest := record["got"][phase]["digest"]) is not None
    }


def was_interrupted(result: Sample) -> bool:
    """Whether another program used the core while a part of the sample was timed."""
    timed = [x for x in result.values() if isinstance(x, dict) and "cpu_s" in x]
    return any(x["s"] > 1.15 * x["cpu_s"] + 2e-4 for x in timed)


def collect(
    encodings: list[str],
    models: dict[str, Path],
    names: list[str],
    kinds: list[str],
    rounds: int,
    limit: int | None,
    peer_names: list[str],
    save: Callable[[dict[str, Any]], object] = lambda data: None,
) -> dict[str, Any]:
    """Run everything; the result is what `--json` writes. `save` gets the results so far after each
    kind of sample.

    models: name → `tokenizer.json`, in addition to the encodings; only for texts. Training has no
    encoding, so it runs with the first one.
    """
    begin = time.monotonic()
    chosen = [peer for peer in peers.installed() if peer.name in peer_names]
    versions = ", ".join(f"{peer.name} {peer.version()}" for peer in chosen)
    data: dict[str, Any] = {
        "versions": f"{versions}, Python {platform.python_version()}",
        "missing": [peer.name for peer in peers.PEERS if not peer.is_installed()],
        "machine": f"{_processor()} ({platform.system()} {platform.machine()}, {date.today()})",
        "tier": tier(),
        "cores": os.cpu_count(),
        "corpus": "files" if corpus.folder() else "generated",
        "rounds": rounds,
        "limit": limit,
        "encodings": {},
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = corpus.folder() or folder
        if texts == folder:
            corpus.write(folder)
        peers.write_assets(folder, encodings)
        peers.copy_models(folder, models)
        (folder / "train").mkdir()
        corpus.write(folder / "train", limit)
        settings: dict[str, Any] = {"limit": limit, "texts": str(texts), "assets": name}
        settings["train"] = str(folder / "train")
        for number, encoding in enumerate([*encodings, *models]):
            run = Run(encoding, settings, chosen)
            part = {"contenders": run.contenders, "notes": run.notes, "records": run.records}
            data["encodings"][encoding] = part
            for kind in kinds:
                if number == 0 or (kind != "train" and encoding in encodings) or kind == "text":
                    run.take(kind, names, rounds)
                data["seconds"] = round(time.monotonic() - begin)
                save(data)
    _progress("")
    return data


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    about = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
    name, family = about.get("model name", "unknown"), about.get("cpu family")
    return f"{name}, family {family}" if family else name


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)
