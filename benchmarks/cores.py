"""Threads from 1 to 16: `python -m benchmarks.cores`, at most ten minutes on 16 cores.

Measures one text, batches of texts to lists, training, and a file with `--workers`, and gigatoken
if it is installed. Each sample is a process of its own; the order changes with each round. A sample
whose ids or merges differ from those of streamtok on one thread is named and not shown. A cell has
MB/s and the ratio to one thread. The last column is the largest number of threads that was still
1.3 times as fast as the number before it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from streamtok.jobs.argument_types import parse_positive_size

from . import corpus, peers, train, turns

ENCODING = "cl100k_base"
VOCAB_SIZE = 32_768
GAIN = 1.3  # below this ratio to the column before, scaling has ended
SMALL = 4  # batches and trainers get 1/4 of the text: lists take much memory
BATCHES = {"batch of 1 KB": 1_000, "batch of 64 KB": 64_000}  # characters of a text
JOBS = ("one text", *BATCHES, "training", "file")
Timed = tuple[float, str]  # seconds, a digest of the result


def digest(arrays: Iterable[Any]) -> str:
    """SHA-256 of the ids, and of their number in each text."""
    found = hashlib.sha256()
    for ids in arrays:
        found.update(b"%d:" % len(ids))
        found.update(np.asarray(ids, "<u4").tobytes())
    return found.hexdigest()


def timed(call: Callable[[], Any], as_arrays: Callable[[Any], Iterable[Any]]) -> Timed:
    begin = time.perf_counter()
    ids = call()
    seconds = time.perf_counter() - begin
    return seconds, digest(as_arrays(ids))


def cut(data: bytes, size: int) -> list[str]:
    """Texts of `size` characters."""
    text = data.decode("utf-8", "ignore")
    return [text[start : start + size] for start in range(0, len(text), size)]


def streamtok_sample(job: str, folder: Path, threads: int) -> Timed:
    import streamtok

    if job == "training":
        return trained(lambda: train_streamtok(folder / "small", threads))
    if job == "file":
        return run_command(folder, threads)
    enc = streamtok.get_encoding(ENCODING)
    if job == "one text":
        data = (folder / "text").read_bytes()
        return timed(lambda: enc.encode_to_numpy(data, num_threads=threads), lambda ids: [ids])
    texts = cut((folder / "small").read_bytes(), BATCHES[job])
    return timed(lambda: enc.encode_ordinary_batch(texts, num_threads=threads), list)


def gigatoken_sample(job: str, folder: Path, threads: int) -> Timed:
    """The caller has set RAYON_NUM_THREADS, which is its number of threads."""
    import gigatoken

    if job == "training":
        return trained(lambda: train_gigatoken(folder / "small"))
    parallel = threads > 1
    tokenizer = gigatoken.Tokenizer.from_tiktoken(folder / f"{ENCODING}.tiktoken")
    if job == "file":  # into memory, not into a file
        source = gigatoken.TextFileSource([str(folder / "text")])
        begin = time.perf_counter()
        tokenizer.encode_files(source, parallel=parallel)
        return time.perf_counter() - begin, ""
    if job == "one text":
        data = (folder / "text").read_bytes()
        return timed(lambda: tokenizer.encode_batch([data], parallel=parallel), list)
    texts = cut((folder / "small").read_bytes(), BATCHES[job])
    return timed(lambda: tokenizer.encode_batch_list(texts, parallel=parallel), list)


SAMPLES = {"streamtok": streamtok_sample, "gigatoken": gigatoken_sample}


def train_streamtok(path: Path, threads: int) -> Callable[[], train.Tokens]:
    from streamtok import Trainer

    trainer = Trainer(train.PATTERN, num_threads=threads)
    trainer.update_file(path)
    enc = trainer.train(VOCAB_SIZE, tie="raw")
    return lambda: [enc.decode_single_token_bytes(i) for i in range(256, enc.n_vocab)]


def train_gigatoken(path: Path) -> Callable[[], train.Tokens]:
    import gigatoken

    _, merges = gigatoken.train_bpe(gigatoken.TextFileSource([str(path)]), VOCAB_SIZE, [])
    return lambda: [a + b for a, b in merges]


def trained(call: Callable[[], Callable[[], train.Tokens]]) -> Timed:
    begin = time.perf_counter()
    tokens = call()
    seconds = time.perf_counter() - begin
    return seconds, hashlib.sha256(b"".join(b"%d:%s," % (len(t), t) for t in tokens())).hexdigest()


def run_command(folder: Path, workers: int) -> Timed:
    """`streamtok encode`: one process for one worker."""
    out = folder / "out.u32"
    command = [sys.executable, "-m", "streamtok", "encode", "-q", "--lines", "--special", "plain"]
    command += ["--threads", "1"] if workers == 1 else ["--workers", str(workers)]
    begin = time.perf_counter()
    subprocess.run([*command, str(folder / "text"), "-o", str(out), "--force"], check=True)
    seconds = time.perf_counter() - begin
    with out.open("rb") as file:
        found = hashlib.sha256()
        while block := file.read(1 << 20):
            found.update(block)
    return seconds, found.hexdigest()


def in_process(peer: str, job: str, folder: Path, threads: int, timeout: float) -> Timed | None:
    """A sample, or None if the library failed. Raises SystemExit if streamtok did."""
    task = json.dumps([peer, job, str(folder), threads])
    environ = {**turns.environment(folder), "RAYON_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "benchmarks.cores", "--sample", task]
    try:
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=timeout, check=True
        )
    except subprocess.SubprocessError as error:
        print(f"{peer}, {job}, {threads} threads: {error}", file=sys.stderr)
        if peer == "streamtok":
            raise SystemExit(f"{job} on {threads} threads failed") from error
        return None
    seconds, found = json.loads(done.stdout.splitlines()[-1])
    return seconds, found


def measure(args: argparse.Namespace, folder: Path) -> Iterator[list[str]]:
    """A row of the table for each job of each library."""
    corpus.write_lines(folder / "text", args.size)
    small = (folder / "text").read_bytes()[: args.size // SMALL]
    (folder / "small").write_bytes(small[: small.rindex(b"\n") + 1])
    peers.write_assets(folder, [ENCODING])
    names = [name for name in SAMPLES if importlib.util.find_spec(name)]
    todo = [(name, job, n) for name in names for job in JOBS for n in args.threads]
    seconds: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    expected: dict[str, str] = {}
    failed: set[tuple[str, str]] = set()
    differ: set[tuple[str, str, int]] = set()
    end = time.monotonic() + 60 * args.minutes
    for number in range(args.rounds):
        # streamtok on one thread goes first, since the others are compared with it.
        shuffled = random.Random(number).sample(todo, len(todo))
        for which in sorted(shuffled, key=lambda x: (x[0], x[2]) != ("streamtok", args.threads[0])):
            if time.monotonic() > end:
                break
            name, job, threads = which
            if (name, job) in failed:
                continue
            print(f"{name}, {job}, {threads} threads", file=sys.stderr, flush=True)
            sample = in_process(name, job, folder, threads, args.timeout)
            if sample is None:
                failed.add((name, job))  # gigatoken's trainer does not stop on a small text
                continue
            taken, found = sample
            if found and expected.setdefault(job, found) != found:
                differ.add(which)
            seconds[which].append(taken)
    for name, job, threads in sorted(differ):
        print(f"{name}, {job}, {threads} threads: other ids than streamtok's", file=sys.stderr)
        if name == "streamtok":
            raise SystemExit("the ids depend on the number of threads")
    for job in JOBS:
        size = args.size if job in ("one text", "file") else len(small)
        for name in names:
            found_times = {
                n: statistics.median(seconds[name, job, n])
                for n in args.threads
                if seconds[name, job, n] and (name, job, n) not in differ
            }
            yield [f"{name}, {job}", *row(found_times, size, args.threads)]


def row(times: dict[int, float], size: int, threads: list[int]) -> list[str]:
    """A cell for each number of threads, and the number up to which more threads help."""
    first = times.get(threads[0])
    cells, limit, growing = [], threads[0], True
    for before, n in zip([threads[0], *threads], threads, strict=False):
        if n not in times or first is None:
            cells.append("–")
            growing = False
            continue
        cells.append(f"{size / 1e6 / times[n]:.0f} (×{first / times[n]:.1f})")
        growing = growing and (n == before or times[before] / times[n] >= GAIN)
        limit = n if growing else limit
    return [*cells, str(limit) if first is not None else "–"]


def main() -> None:
    if sys.argv[1:2] == ["--sample"]:
        peer, job, folder, count = json.loads(sys.argv[2])
        print(f"\n{json.dumps(SAMPLES[peer](job, Path(folder), count))}")
        return
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=parse_positive_size, default=10**9)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=9, help="no sample begins after these")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one sample")
    parser.add_argument("--threads", default="1,2,4,8,16", help="those up to the number of cores")
    args = parser.parse_args()
    args.threads = [n for n in map(int, args.threads.split(",")) if n <= cores]
    with tempfile.TemporaryDirectory() as name:
        columns = ["MB/s (× one thread)", *map(str, args.threads), "scales to"]
        turns.show(columns, measure(args, Path(name)))


if __name__ == "__main__":
    main()
