"""Processes that write one file, side by side: `python -m benchmarks.scale --size 400MB`.

One thread, two workers (`streamtok encode --workers 2`), and the ceiling: two processes that each
encode one half of the text for themselves, at the same time. One thread and two workers must write
the same bytes (SHA-256), or nothing is printed. They take turns, and the ratio is the median of
those within a round.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from streamtok.jobs.argument_types import parse_positive_size

from . import corpus, turns

JOBS = {"one thread": ["--threads", "1"], "two workers": ["--workers", "2"], "ceiling": []}


def run(folder: Path, format: str, job: str) -> tuple[float, str]:
    """Seconds, and a digest of the output files."""
    command = [sys.executable, "-m", "streamtok", "encode", "-q", "--lines", "--special", "plain"]
    command += ["--format", format, *(JOBS[job] or ["--threads", "1"])]
    out = folder / "out"
    out.mkdir()
    inputs = ["first", "second"] if job == "ceiling" else ["text"]
    begin = time.perf_counter()
    running = [
        subprocess.Popen([*command, str(folder / one), "-o", str(out / one)]) for one in inputs
    ]
    if any([one.wait() for one in running]):
        raise SystemExit(f"{job} failed")
    taken, digest = time.perf_counter() - begin, hashlib.sha256()
    for path in sorted(out.iterdir()):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
        path.unlink()
    out.rmdir()
    return taken, "" if job == "ceiling" else digest.hexdigest()


def side_by_side(args: argparse.Namespace, folder: Path) -> Iterator[list[str]]:
    """A row for each format. Raises SystemExit if the jobs wrote different bytes."""
    corpus.write_lines(folder / "text", args.size)
    text = (folder / "text").read_bytes()
    middle = text.index(b"\n", len(text) // 2) + 1
    (folder / "first").write_bytes(text[:middle])
    (folder / "second").write_bytes(text[middle:])
    for format in args.formats.split(","):
        rounds = [{job: run(folder, format, job) for job in JOBS} for _ in range(args.rounds)]
        if len({digest for one in rounds for _, digest in one.values() if digest}) != 1:
            raise SystemExit(f"{format}: the files are not the same")
        times = {name: [one[name][0] for one in rounds] for name in JOBS}
        speeds = [f"{args.size / 1e6 / statistics.median(times[name]):.0f}" for name in JOBS]
        yield [format, *speeds, f"{turns.ratio(times['ceiling'], times['two workers']):.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=parse_positive_size, default=200 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--formats", default="u32,npy,megatron,datatrove,parquet")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        columns = ["MB/s", *JOBS, "two workers ÷ ceiling"]
        turns.show(columns, side_by_side(args, Path(name)))


if __name__ == "__main__":
    main()
