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

from . import command_line, corpus, peers, train
from .two_cores import COMMAND, THREADED
from .worker import Sample

Who = tuple[str, str]  # peer, mode

KINDS = ("text", "steady", "calls", "decode", "hard", "load", "threads", "train")
MODEL_KINDS = ("text", "steady")  # those that a model's vocabulary is asked for
_PHASES = {"text": ("cold", "unseen"), "steady": ("steady",)}  # whose ids are compared
_JUDGES = ("tiktoken", "tokenizers")  # a model's is tokenizers: tiktoken does not read its file
_STEADY = ("streamtok", "encode_to_numpy")
_LONG_KINDS = ("decode", "hard", "threads", "train")  # half as many turns
_ENVIRONMENT = {
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OPENBLAS_NUM_THREADS": "1",  # NumPy's thread spins while the first text is encoded
}
_TRIES = 3  # a sample during which another program had the core is taken again
_MOST_AGAIN = 0.25  # of all samples: on a busy machine it does not help
_TIMEOUT, _COMMAND_TIMEOUT = 180, 1800  # seconds for one sample
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

    def _environment(self) -> dict[str, str]:
        """dict: modules are compiled once, as where a package is installed."""
        return command_line.environment(Path(self.settings["assets"])) | _ENVIRONMENT

    def sample(self, kind: str, who: Who, **task: Any) -> Sample | str:
        """One process; a str says why there is no figure."""
        if kind == "train":
            return train.run(who[0], int(task["corpus"]), self.settings["train"])
        task |= {"kind": kind, "peer": who[0], "mode": who[1], "encoding": self.encoding}
        task |= self.settings | {"slow": self._is_slow(who)}
        command = [sys.executable, "-m", "benchmarks.worker", json.dumps(task)]
        timeout = _COMMAND_TIMEOUT if kind == "command" else _TIMEOUT
        for attempt in range(1 if kind == "equal" or task["slow"] else _TRIES):
            if attempt and self.taken_again > _MOST_AGAIN * self.taken:
                break
            self.taken += not attempt
            self.taken_again += attempt > 0
            try:
                done = subprocess.run(
                    command,
                    check=False,
                    cwd=command_line.ROOT,
                    env=self._environment() | _texts_of(task),
                    capture_output=True,
                    text=True,
                    timeout=timeout,
                )
            except subprocess.TimeoutExpired:
                return f"> {timeout} s"
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
        texts = {
            "text": names,
            "steady": names,
            "hard": list(corpus.hard_pretokens(16)),
            "train": [str(size) for size in train.SIZES],
        }.get(kind, [""])
        tasks = [(kind, who) for who in self.entrants(kind)]
        if kind == "threads":
            tasks.append(("command", ("streamtok", COMMAND)))
        if kind in _LONG_KINDS:
            rounds = max(1, rounds // 2)
        for turn in range(rounds):
            for text in texts:
                shift = turn * len(tasks) // rounds
                for what, who in tasks[shift:] + tasks[:shift]:
                    if turn and self._is_slow(who):
                        continue
                    _progress(f"{self.encoding} {kind} {text} turn {turn}: {' '.join(who)}")
                    got = self.sample(what, who, corpus=text, swap=turn % 2 == 1)
                    record = {"kind": kind, "text": text, "peer": who[0], "mode": who[1]}
                    self.records.append(record | {"turn": turn, "got": got})
        if kind in _PHASES:
            self.check(kind)

    def check(self, kind: str) -> None:
        """Take away samples of texts whose ids are not the judge's: all that is timed is equal."""
        texts = [r for r in self.records if r["kind"] == kind and isinstance(r["got"], dict)]
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
        own = peers.PEERS[0]
        flat = [who for who in self.contenders if peers.is_flat(who)]
        known = {peer for peer, _ in self.contenders}
        if kind == "text":
            return self.contenders
        if kind == "steady":
            return [who for who in flat if who in (self.fastest_mode(who[0]), _STEADY)]
        short = [who for who in self.contenders if who[1] not in peers.ONLY_FOR_TEXTS]
        if kind == "calls":
            return short
        if kind == "hard":
            return [w for w in short if w[0] == own.name or w[1] == peers.by_name(w[0]).default()]
        if kind == "load":
            return [(peer, peers.by_name(peer).default()) for peer in peers.in_order(known)]
        if kind == "decode":
            order = peers.in_order(known)
            return [(peer, name) for peer in order for name in peers.by_name(peer).decoders]
        if kind == "train":
            return [(name, "train") for name in train.installed()]
        return [(own.name, way) for way in THREADED]

    def fastest_mode(self, name: str) -> Who | None:
        """A peer's fastest mode with flat ids, as far as is known; None for streamtok."""
        flat = [who for who in self.contenders if who[0] == name and peers.is_flat(who)]
        return None if name == "streamtok" else max(flat, key=self.speeds.__getitem__)


def _texts_of(task: Sample) -> dict[str, str]:
    """Where a sample's process finds the texts, so that it need not make them."""
    return {corpus.VARIABLE: task["texts"]} if "texts" in task else {}


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
    for i, phase in enumerate(_PHASES[record["kind"]]):
        digest = record["got"][phase]["digest"]
        if digest is not None:
            half = record["turn"] + i if record["kind"] == "text" else 0
            found[record["text"], half % 2 == 1] = digest
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
    big_bytes: int,
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
        "big_bytes": big_bytes,
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
        if "threads" in kinds:  # the file that the command line encodes
            settings["file"] = str(folder / "big")
            command = [sys.executable, "-m", "benchmarks.corpus", settings["file"], str(big_bytes)]
            subprocess.run(command, check=True, cwd=command_line.ROOT)
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
