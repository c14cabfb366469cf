"""Runs that die, and what the tests need for it.

Two ways to die, each followed by `--resume` until the run is complete, when every file must be byte
for byte that of a run that nothing interrupted, and nothing else may be left:

- `kill -9` of a real process at a random moment, again and again (`kill_at_random`);
- in a forked child, `_exit` in the middle of each system call that changes files, one after the
  other; a write writes its first half (`die_at_step`).
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import gzip
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import streamtok
from streamtok.cli.main import main as streamtok_main
from streamtok.jobs.sources import unit_ends

from ..serve_clients import ENV
from ..system_calls import at_call

RESUME = ["--resume", "--chunk-size", "1k"]
PROGRAM = """
from streamtok.cli.process import run
from streamtok.jobs.sources import unit_ends
unit_ends.UNIT = {}
run()
"""
POLICIES = [
    [], ["--special", "plain"], ["--errors", "replace"],
    ["--special", "allow"], ["--max-pending", "1M"],
]  # fmt: skip
WORKERS = [[], ["--workers", "2"], ["--workers", "3"]]
LARGE = ["--resume", "--chunk-size", "150k", "--threads", "2"]  # enough to be cut between threads
WORDS = ["the", "of", "and", "12", "345", "x", "==", "naïve", "日本語", "🎉", "streaming"]
WORDS += ["\ttokens", "  ", "\r\n"]


def make_text(rng: random.Random, size: int) -> str:
    """Text of at least `size` characters, with what is hard to cut."""
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(rng.choice(WORDS) * rng.choice([1, 1, 1, 5]) + rng.choice([" ", " ", "\n"]))
        length += len(parts[-1])
    return "".join(parts)


def make_rows(rng: random.Random, text: str, row: Callable[[object], dict[str, object]]) -> bytes:
    """JSON lines of the lines of a text; some of them are bad: they are skipped, and logged."""
    rows = [json.dumps({"id": i, **row(line)}) for i, line in enumerate(text.split("\n"))]
    for i in range(len(rows), 0, -9):
        rows.insert(i, rng.choice(["{broken", json.dumps(row(5)), "{}", ""]))
    return ("\n".join(rows) + "\n{broken\n").encode()


@dataclass
class Scenario:
    """A command line, whose files are made in a folder. out: the output; stdin: fed slowly.

    policies: options of which each process takes some; they decide about nothing in these inputs.
    unit: bytes, so that small inputs have many units.
    """

    name: str
    args: list[str]
    out: str
    files: dict[str, bytes] = field(default_factory=dict)
    stdin: bytes | None = None
    resume: list[str] = field(default_factory=lambda: RESUME)
    policies: list[list[str]] = field(default_factory=lambda: [[]])
    unit: int = 600

    def prepare(self, folder: Path) -> None:
        for name, data in self.files.items():
            (folder / name).write_bytes(data)

    def command(self, folder: Path, *more: str) -> list[str]:
        names = [str(folder / name) for name in self.files]
        return ["encode", *names, *self.args, "-o", str(folder / self.out), "-q", *more]


def scenarios(size: int, seed: int = 1) -> list[Scenario]:
    """One of each kind, on `size` characters."""
    rng = random.Random(seed)
    texts = [make_text(rng, size // 3) for _ in range(3)]
    plain = {f"{i}.txt": text.encode() for i, text in enumerate(texts)}
    large = {"0.txt": make_text(rng, max(900_000, 10 * size)).encode()}
    packed = {
        "0.txt.gz": gzip.compress(texts[0].encode()) + gzip.compress(texts[1].encode()),
        "1.txt": texts[2].encode(),
    }
    jsonl = {"rows.jsonl": make_rows(rng, "".join(texts), lambda text: {"meta": {"text": text}})}
    end = ["--append", "<|endoftext|>"]
    tokens = str(max(50, size // 12))
    shards = ["--shard-tokens", tokens]
    pieces = ["-e", unigram_file()]
    megatron = ["-e", "gpt2", "--format", "megatron", "--jsonl", "meta.text", "--skip-empty"]
    megatron.append("--skip-bad-lines")
    return [
        Scenario("raw ids with a sidecar", [], "out.bin", plain, policies=WORKERS),
        Scenario("npy in shards, of packed files", [*pieces, *shards], "out.npy", packed),
        Scenario("JSONL, of lines", ["--lines", *end], "out.jsonl", plain, policies=WORKERS),
        Scenario("Megatron, of JSONL", [*megatron, *shards], "out.bin", jsonl, policies=POLICIES),
        Scenario("datatrove, of lines", ["--lines", *shards, *end], "out.ds", plain),
        Scenario("JSONL, of paragraphs", ["--delimiter", r"\n\n", *end], "out.jsonl", packed),
        Scenario("Parquet, of lines", ["--lines", *shards], "out.parquet", plain),
        Scenario("large blocks on two threads", [], "out.u32", large, resume=LARGE, unit=140_000),
        Scenario("text, of standard input", ["--lines"], "out.txt", {}, texts[0].encode()),
    ]


@functools.cache
def unigram_file() -> str:
    """A tokenizer.json of which a stream holds what is not final of the whole text."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    texts = sorted({part for word in WORDS for part in (*word, word[:2], word)} | {" ", "\n"})
    vocab = [["<unk>", 0.0], *([text, -1.5 - 1.1 * at % 7] for at, text in enumerate(texts))]
    model = {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": vocab}
    path = Path(folder) / "tokenizer.json"
    path.write_text(json.dumps({"added_tokens": [], "model": model}), "utf-8")
    return str(path)


def contents(folder: Path, but: Collection[str]) -> dict[str, bytes]:
    """The files of a folder except some; a log of skipped lines is as if its inputs lay nowhere."""
    found = {one.name: one.read_bytes() for one in sorted(folder.iterdir()) if one.name not in but}
    here = f"{folder}{os.sep}".encode()
    return {
        name: data.replace(here, b"") if name.endswith(".skipped.jsonl") else data
        for name, data in found.items()
    }


def expected(scenario: Scenario) -> dict[str, bytes]:
    """The files of a run that nothing interrupts, and that keeps no checkpoint."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scenario.prepare(folder)
        with spawned(scenario, folder) as process:
            assert process.wait() == 0, scenario.name
        return contents(folder, scenario.files)


@contextlib.contextmanager
def spawned(scenario: Scenario, folder: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A real process; its standard input comes slowly, a little at a time."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(scenario.unit), *scenario.command(folder, *more)],
        stdin=subprocess.DEVNULL if scenario.stdin is None else subprocess.PIPE,
        env=ENV,
    )
    feeder = None
    if scenario.stdin is not None:
        feeder = threading.Thread(target=_feed, args=(process, scenario.stdin))
        feeder.start()
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if feeder is not None:
            feeder.join()


def _feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    step = max(1, len(data) // 40)
    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
        for start in range(0, len(data), step):
            pipe.write(data[start : start + step])
            pipe.flush()
            time.sleep(0.01)


def kill_at_random(scenario: Scenario, rng: random.Random, good: dict[str, bytes]) -> int:
    """How many processes were killed until the run was complete; its files are compared."""
    kills = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scenario.prepare(folder)
        checkpoint = folder / f"{scenario.out}.checkpoint"
        while True:
            every = rng.choice(["0", "0", "0.01"])
            before = _stamp(checkpoint)
            policy = rng.choice(scenario.policies)
            more = [*scenario.resume, "--checkpoint-every", every, *policy]
            with spawned(scenario, folder, *more) as process:
                code = _wait_or_kill(process, checkpoint, before, rng)
            if code == 0:
                break
            assert code == -signal.SIGKILL, f"{scenario.name}: exit code {code}"
            kills += 1
            there = [
                name for name in contents(folder, scenario.files) if not name.endswith(".lock")
            ]
            is_done = sorted(there) == sorted(good)
            if is_done:  # the next run would refuse to replace what is finished
                break
        found = contents(folder, scenario.files)
        found = {name: data for name, data in found.items() if not name.endswith(".lock")}
        compare(found, good, scenario)
    return kills


def _wait_or_kill(
    process: subprocess.Popen[bytes], checkpoint: Path, last: Any, rng: random.Random
) -> int:
    """The exit code. It is killed a random moment after a random number of checkpoints, not after
    some seconds, so that a slow machine is no other test; sometimes before the first one.
    """
    left = rng.choice([0, 1, 1, 2, 5, 10, 20, 40])
    deadline = time.monotonic() + rng.uniform(0, 0.5) if not left else float("inf")
    while (code := process.poll()) is None:
        if (now := _stamp(checkpoint)) != last:
            last = now
            left -= 1
        if left <= 0 and (deadline == float("inf") or time.monotonic() > deadline):
            time.sleep(rng.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
            return process.wait()
        time.sleep(0.001)
    return code


def _stamp(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(FileNotFoundError):
        status = path.stat()
        return status.st_ino, status.st_mtime_ns
    return None


def compare(found: dict[str, bytes], good: dict[str, bytes], scenario: Scenario) -> None:
    """Raises AssertionError unless the files are the same."""
    assert found.keys() == good.keys(), f"{scenario.name}: {sorted(found)}, not {sorted(good)}"
    for name, data in good.items():
        assert found[name] == data, f"{scenario.name}: {name} differs"


# Death in the middle of a system call


def die_at_step(scenario: Scenario, folder: Path, step: int) -> int:
    """The exit code of a run in a forked process, which dies at its n-th change of files: 137.

    Nothing is synced: it is the process that dies, not the machine.
    """
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    pickle.dump((scenario, folder, step), server.stdin)
    server.stdin.flush()
    return int(server.stdout.readline())


@functools.cache
def _server() -> subprocess.Popen[bytes]:
    """A process that forks: a small one, because each fork copies the tables of its memory."""
    tree = Path(__file__).parents[2]  # of the tests, which may be another than the package's
    code = f"import sys; sys.path.insert(0, {str(tree)!r}); from tests.long import crash"
    command = [sys.executable, "-c", f"{code}; crash.fork_again()"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end() -> None:
        with process:
            process.kill()

    atexit.register(end)
    return process


def fork_again() -> None:
    """The server: for each run that is asked for, a child, whose exit code is printed."""
    streamtok.get_encoding("gpt2")
    while True:
        try:
            run = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if child := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        else:
            _run_and_die(*run)


def _run_and_die(scenario: Scenario, folder: Path, step: int) -> None:
    def die(name: str, paths: tuple[Any, ...]) -> None:
        os._exit(137)

    code = 99
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1):
            os.dup2(null, fd)
        unit_ends.UNIT = scenario.unit
        os.fsync = lambda fd: None
        more = [*scenario.resume, "--checkpoint-every", "0"]
        with at_call(step, die):
            code = streamtok_main(scenario.command(folder, *more))
    finally:
        os._exit(code)


SIZE = 300_000  # characters of each input


@functools.cache
def known(number: int) -> tuple[Scenario, dict[str, bytes]]:
    """One of the scenarios, and its files."""
    scenario = scenarios(SIZE)[number]
    return scenario, expected(scenario)


def one_round(seed: int) -> collections.Counter[str]:
    """Kill one run again and again until it is complete."""
    rng = random.Random(seed)
    scenario, good = known(rng.randrange(len(scenarios(0))))
    kills = kill_at_random(scenario, rng, good)
    return collections.Counter({"kills": kills, f"kills: {scenario.name}": kills})
