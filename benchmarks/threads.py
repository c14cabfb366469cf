"""One thread against two: `python -m benchmarks.threads`.

Equal ids first. Then both take turns on the same text, after a warm-up of either, and what counts
is the median of the ratios within a turn: batches of documents of about 2 KB to lists, one text to
an array, a list and a count, and a file through `streamtok encode`, by the wall clock with the
start of the process. The text is the lines of all five, shuffled, so that no part of it is harder.

Needs as many cores that are free: a busy one shows as a lower ratio. How well anything scales there
is told by SHA-256, which has no memory to share and no lock.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import streamtok
from streamtok.parallel.threads import run_in_threads, usable_cores

from . import corpus
from .big_file import make, parse_size

_DOCUMENT = 2_000

Way = Callable[[int], Any]  # number of threads to result


def shuffled() -> str:
    """str: the lines of all texts in random order."""
    lines = [line for name in corpus.NAMES for line in corpus.load(name).decode().splitlines(True)]
    random.Random(1).shuffle(lines)
    return "".join(lines)


def in_memory(enc: streamtok.Encoding, text: str) -> dict[str, Way]:
    """What is timed in this process."""
    documents = [text[at : at + _DOCUMENT] for at in range(0, len(text), _DOCUMENT)]
    data = text.encode()
    settings: dict[str, Any] = {"disallowed_special": ()}
    return {
        "encode_batch": lambda n: enc.encode_batch(documents, num_threads=n, **settings),
        "encode_ordinary_batch": lambda n: enc.encode_ordinary_batch(documents, num_threads=n),
        "one text, encode_to_numpy": lambda n: enc.encode_to_numpy(text, num_threads=n, **settings),
        "one text of bytes, encode_to_numpy": lambda n: enc.encode_to_numpy(
            data, num_threads=n, **settings
        ),
        "one text, encode_batch": lambda n: enc.encode_batch([text], num_threads=n, **settings),
        "one text, count": lambda n: enc.count(text, num_threads=n, **settings),
    }


def hashing(n: int) -> None:
    """Twice the same work, on one or two threads: what the machine can do."""
    block = bytes(1 << 24)
    left = [0, 0]

    def work() -> None:
        while left:
            left.pop()
            hashlib.sha256(block).digest()

    run_in_threads(work, n)


def through_cli(path: Path, out: Path, encoding: str, options: list[str]) -> Way:
    def run(n: int) -> str:
        command = [sys.executable, "-m", "streamtok", "encode", "-q", "-e", encoding, str(path)]
        subprocess.run([*command, "-o", str(out), "--threads", str(n), *options], check=True)
        return ""

    return run


def measure(way: Way, threads: int, rounds: int) -> tuple[float, float, float, float]:
    """(seconds with one, with several, ratio of these minima, median of the ratios)."""
    times: dict[int, list[float]] = {1: [], threads: []}
    for _ in range(rounds):
        for n, found in times.items():
            begin = time.perf_counter()
            result = way(n)
            found.append(time.perf_counter() - begin)
            del result
    one, several = times[1], times[threads]
    ratios = [a / b for a, b in zip(one, several, strict=True)]
    return min(one), min(several), min(one) / min(several), statistics.median(ratios)


def is_equal(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else bool(a == b)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--encodings", nargs="*", default=["cl100k_base"])
    parser.add_argument("--file", type=parse_size, default="200MB", help="for the command line")
    options = parser.parse_args()
    if options.threads > usable_cores():
        raise SystemExit(f"{options.threads} threads need as many cores, not {usable_cores()}")
    text = shuffled()
    size = len(text.encode())

    def row(name: str, encoding: str, way: Way, size: int, rounds: int) -> None:
        one, several, of_minima, median = measure(way, options.threads, rounds)
        speeds = f"{size / one / 1e6:.0f} | {size / several / 1e6:.0f}"
        print(f"| {name} | {encoding} | {speeds} | {of_minima:.2f} | {median:.2f} |", flush=True)

    print(f"{size:,} bytes in memory, {options.threads} threads, {options.rounds} rounds\n")
    print(f"| | encoding | MB/s on one | on {options.threads} | ratio | median ratio |")
    print("|---|---|---|---|---|---|")
    row("SHA-256", "", hashing, 2 << 24, options.rounds)
    for encoding in options.encodings:
        enc = streamtok.get_encoding(encoding)
        for name, way in in_memory(enc, text).items():
            if not is_equal(way(1), way(options.threads)):
                raise SystemExit(f"{name}: the ids differ")
            row(name, encoding, way, size, options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        make(path, options.file)
        ways: dict[str, list[str]] = {
            "ids.bin": [],
            "ids.u32": [],
            "ids.ds": ["--lines"],
        }
        for encoding in options.encodings:
            for name, more in ways.items():
                out = Path(folder) / name
                way = through_cli(path, out, encoding, more)
                digests = set()
                for n in (1, options.threads):
                    way(n)
                    digests.add(hashlib.sha256(out.read_bytes()).digest())
                if len(digests) > 1:
                    raise SystemExit(f"streamtok encode -o {name}: the files differ")
                title = " ".join(["streamtok encode -o", name, *more])
                row(title, encoding, way, os.path.getsize(path), max(3, options.rounds // 5))
    return 0


if __name__ == "__main__":
    sys.exit(main())
