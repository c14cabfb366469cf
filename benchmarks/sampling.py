"""Asks for samples: who takes part in what, in which order, how often, and what is taken again.

Each sample is a process (`worker.py`), and the contenders take turns. The records are what
`compare.py --json` writes and what the tables are made from.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

from streamtok._core._testing import tier

from . import corpus, peers, processes, train
from .peers import Who
from .two_cores import THREADED
from .worker import Sample

KINDS = ("text", "calls", "threads", "train")
MODEL_KINDS = ("text",)  # those that a model's vocabulary is asked for
_JUDGES = ("tiktoken", "tokenizers")  # a model's is tokenizers: tiktoken does not read its file
_LONG_KINDS = ("threads", "train")  # half as many turns
_ENVIRONMENT = {
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OPENBLAS_NUM_THREADS": "1",  # NumPy's thread spins while the first text is encoded
}
_TRIES = 3  # a sample during which another program had the core is taken again
_MOST_AGAIN = 0.25  # of all samples: on a busy machine it does not help
_TIMEOUT = 180  # seconds for one sample
_SLOW = 5.0  # MB/s: who is slower has one turn


class Run:
    """Samples of all contenders for one encoding."""

    def __init__(
        self, encoding: str, folder: Path, settings: dict[str, Any], chosen: list[peers.Peer]
    ):
        """settings: what is the same for all tasks (`limit`, names of files)."""
        self.encoding, self.settings = encoding, settings | {"assets": str(folder)}
        self.notes: list[str] = []
        self.taken = self.taken_again = 0
        self.speeds: dict[Who, float] = {}
        self.records: list[dict[str, Any]] = []
        self.contenders = self._equal_ones([peer for peer in chosen if peer.takes(encoding)])

    def sample(self, kind: str, who: Who, **task: Any) -> Sample | str:
        """One process; a str says why there is no figure."""
        if kind == "train":
            return train.run(who[0], int(task["corpus"]), self.settings["train"])
        task |= {"kind": kind, "peer": who[0], "mode": who[1], "encoding": self.encoding}
        task |= self.settings | {"slow": self._is_slow(who)}
        command = [sys.executable, "-m", "benchmarks.worker", json.dumps(task)]
        environment = processes.environment(Path(self.settings["assets"])) | _ENVIRONMENT
        environment[corpus.VARIABLE] = task["texts"]  # where they are: it need not make them
        for attempt in range(1 if kind == "equal" or task["slow"] else _TRIES):
            if attempt and self.taken_again > _MOST_AGAIN * self.taken:
                break
            self.taken += not attempt
            self.taken_again += attempt > 0
            try:
                done = subprocess.run(
                    command, check=False, cwd=processes.ROOT, env=environment,
                    capture_output=True, text=True, timeout=_TIMEOUT,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return f"> {_TIMEOUT} s"
            if done.returncode:
                lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
                return lines[-1][:120].replace("|", "/")  # it will stand in a table
            result: Sample = json.loads(done.stdout.splitlines()[-1])
            if not was_interrupted(result):
                break
        return result

    def _equal_ones(self, chosen: list[peers.Peer]) -> list[Who]:
        """Those whose ids are the reference's on all texts."""
        names = [peer.name for peer in chosen]
        judge = peers.by_name(next(x for x in (*_JUDGES, "streamtok") if x in names))
        self.judge = judge.name
        expected = self.sample("equal", (judge.name, judge.default()))
        if isinstance(expected, str):
            raise RuntimeError(f"{judge.name}: {expected}")
        equal = []
        for peer in chosen:
            differing: dict[str, list[str]] = {}  # texts → modes
            for mode in peer.modes:
                who = (peer.name, mode)
                result = self.sample("equal", who)
                _progress(f"{self.encoding} equal: {peer.name} {mode}")
                if isinstance(result, str):
                    self.notes.append(f"{peer.name} `{mode}`: {result}")
                    continue
                wrong = ", ".join(different(result["texts"], expected["texts"]))
                if wrong:
                    differing.setdefault(wrong, []).append(f"`{mode}`")
                else:
                    equal.append(who)
                    self.speeds[who] = result["mb_s"]
            self.notes += [
                f"{peer.name} {', '.join(modes)}: not timed, not the ids of {judge.name} on {texts}"
                for texts, modes in differing.items()
            ]
        if not any(peer == "streamtok" for peer, _ in equal):
            raise RuntimeError(f"streamtok's ids are wrong: {self.notes}")
        return equal

    def take(self, kind: str, names: list[str], rounds: int) -> None:
        """Records of one kind from all who take part in it; each turn begins with another one."""
        sizes = [str(size) for size in train.SIZES]
        texts = {"text": names, "train": sizes}.get(kind, [""])
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
        """Take away samples of texts whose ids are not the judge's: all that is timed is equal."""
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
        if kind == "text":
            return self.contenders
        if kind == "calls":
            return [who for who in self.contenders if who[1] not in peers.ONLY_FOR_TEXTS]
        if kind == "train":
            return [(name, "train") for name in train.installed()]
        return [("streamtok", way) for way in THREADED]


def kinds_for(kinds: Iterable[str], encoding: str, is_first: bool) -> list[str]:
    """Those that an encoding or a model is asked for; training has no encoding: only the first."""
    found = [kind for kind in kinds if encoding in peers.ENCODINGS or kind in MODEL_KINDS]
    return [kind for kind in found if kind != "train" or is_first]


def different(texts: dict[str, Sample], expected: dict[str, Sample]) -> list[str]:
    """Names of the texts with other ids; for a mode that only counts, with another number."""
    return [
        name
        for name, timed in texts.items()
        if timed["tokens"] != expected[name]["tokens"]
        or timed["digest"] not in (None, expected[name]["digest"])
    ]


def _digests(record: dict[str, Any]) -> dict[tuple[str, bool], str]:
    """(text, which half of it) → digest of the ids, but for who only counts."""
    found = {}
    for i, phase in enumerate(("cold", "unseen")):
        if (digest := record["got"][phase]["digest"]) is not None:
            found[record["text"], (record["turn"] + i) % 2 == 1] = digest
    return found


def was_interrupted(result: Sample) -> bool:
    """Whether another program had the core in a part of the sample that was timed."""
    timed = [x for x in result.values() if isinstance(x, dict) and "cpu_s" in x]
    return any(x["s"] > 1.15 * x["cpu_s"] + 2e-4 for x in timed)


def collect(
    encodings: list[str],
    models: dict[str, Path],
    names: list[str],
    kinds: list[str],
    rounds: int,
    limit: int | None,
    peer_names: list[str] | None = None,
    save: Callable[[dict[str, Any]], object] = lambda data: None,
) -> dict[str, Any]:
    """Run everything; the result is what `--json` writes. `save` gets what there is after each
    kind of sample.

    models: name → `tokenizer.json`, in addition to the encodings; what is asked of one of all
    encodings is asked of the first.
    """
    begin = time.monotonic()
    chosen = [peer for peer in peers.installed() if peer.name in (peer_names or [peer.name])]
    versions = ", ".join(f"{peer.name} {peer.version()}" for peer in chosen)
    data: dict[str, Any] = {
        "versions": f"{versions}, Python {platform.python_version()}",
        "missing": [peer.name for peer in peers.PEERS if not peer.is_installed()],
        "machine": f"{_processor()} ({platform.system()} {platform.machine()}, {date.today()})",
        "tier": tier(),
        "cores": os.cpu_count(),
        "corpus": "files" if corpus.folder() else "generated",
        "corpora": names,
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
        settings: dict[str, Any] = {"limit": limit, "texts": str(texts)}
        if "train" in kinds:
            settings["train"] = str(train.write_texts(folder / "train", limit))
        for number, encoding in enumerate([*encodings, *models]):
            run = Run(encoding, folder, settings, chosen)
            part = {"contenders": run.contenders, "notes": run.notes, "records": run.records}
            data["encodings"][encoding] = part
            for kind in kinds_for(kinds, encoding, number == 0):
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
