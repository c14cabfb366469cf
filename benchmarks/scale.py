"""Jobs in parts, side by side: `python -m benchmarks.scale --size 400MB`.

Two workers of a plan, and the ceiling: two processes that each run one half of the parts for
themselves, at the same time. Both must write the same bytes as one worker (SHA-256), or nothing is
printed. They take turns, and the ratio is a median within a round.

--parts 1_000_000: instead, what parts cost beside their text. A plan with so many parts, of one
line of one byte each, goes through all that a driver does. The first parts (`--run`) are really
encoded. The others get the files and records that these would, with their own numbers, from a
worker that does no more than that; the driver does not see a difference.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamtok import Plan, commit, plan
from streamtok.parallel.worker_processes import answer_numbers
from streamtok.parts import workers
from streamtok.parts.part import missing_parts
from streamtok.parts.part import Record, read_record, record_path
from streamtok.pipeline.argument_types import parse_positive_size

from . import corpus, turns

_COPIER = "import sys; from benchmarks.scale import run_copier; run_copier(sys.argv[1])"
_HALF = (
    "import sys; from streamtok import Plan, run_part; made = Plan.load(sys.argv[1])\n"
    "for number in range(int(sys.argv[2]), len(made), 2): run_part(made, number)"
)


def on_workers(made: Plan, count: int) -> None:
    workers.run_parts(made, range(len(made)), count)


def ceiling(made: Plan) -> None:
    """Two processes, each with every second part, that know nothing of each other."""
    path = made.save()
    both = [subprocess.Popen([sys.executable, "-c", _HALF, path, str(i)]) for i in range(2)]
    if any([one.wait() for one in both]):
        raise SystemExit("a process of the ceiling failed")


JOBS: dict[str, Callable[[Plan], None]] = {
    "one worker": functools.partial(on_workers, count=1),
    "two workers": functools.partial(on_workers, count=2),
    "ceiling": ceiling,
}


def side_by_side(args: argparse.Namespace, folder: Path) -> Iterator[list[str]]:
    """A row for each format. Raises SystemExit if the jobs wrote different bytes."""
    corpus.write_lines(folder / "text", args.size)

    def run(job: Callable[[Plan], None], format: str) -> tuple[float, str]:
        """Seconds, and a digest of the files."""
        options: dict[str, Any] = {"part_size": args.part_size, "format": format, "lines": True}
        options["disallowed_special"] = ()
        made = plan(str(folder / "text"), str(folder / "out"), encoding="cl100k_base", **options)
        made.save()
        begin = time.perf_counter()
        job(made)
        commit(made)
        taken, digest = time.perf_counter() - begin, hashlib.sha256()
        for path in sorted((folder / "out").glob("part-*")):
            digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
        shutil.rmtree(folder / "out")
        return taken, digest.hexdigest()

    for format in args.formats.split(","):
        rounds = [{x: run(job, format) for x, job in JOBS.items()} for _ in range(args.rounds)]
        if len({digest for one in rounds for _, digest in one.values()}) != 1:
            raise SystemExit(f"{format}: the files are not the same")
        times = {name: [one[name][0] for one in rounds] for name in JOBS}
        speeds = [f"{args.size / 1e6 / statistics.median(times[name]):.0f}" for name in JOBS]
        yield [format, *speeds, f"{turns.ratio(times['ceiling'], times['two workers']):.2f}"]


def beside_the_text(args: argparse.Namespace, top: Path) -> Iterator[list[str]]:
    """A row for each step: the time, and the memory of this process after it."""
    parts, source = args.parts, top / "lines"
    source.write_bytes(b"\n" * parts)
    made: Any = None
    done, missing = array("q"), array("q")

    def make() -> None:
        nonlocal made
        settings: dict[str, Any] = {"encoding": "gpt2", "format": "u32", "part_size": 1}
        made = plan(str(source), str(top / "out"), lines=True, sidecar=False, **settings)

    def run(numbers: array[int]) -> None:
        workers.run_parts(made, numbers, 2, lambda record: done.append(record.part))
        workers._PROGRAM = _COPIER  # from now on

    steps: dict[str, Callable[[], Any]] = {
        "plan": make,
        "save": lambda: Plan.save(made),
        "load and compare": lambda: Plan.save(made),
        "what is missing": lambda: missing.extend(missing_parts(made)),
        "run, 2 workers": lambda: run(missing[: args.run]),
        "give out, 2 workers that copy": lambda: run(missing[args.run :]),
        "commit": lambda: commit(made),
    }
    for name, work in steps.items():
        begin, before = time.perf_counter(), len(done)
        result = work()
        seconds = time.perf_counter() - begin
        count = len(done) - before or parts
        each = [f"{seconds:.1f}", f"{seconds / count * 1e3:.3f}", f"{turns.memory() >> 20} MiB"]
        yield [name, f"{count:,}", *each]
    if sorted(done) != list(range(parts)) or result.documents != parts:
        raise SystemExit("parts are missing")


def run_copier(path: str) -> None:
    """Be a worker that copies."""
    made = Plan.load(path)
    answer_numbers(lambda number: copy_part(made, number))


def copy_part(made: Plan, number: int) -> dict[str, Any]:
    """Give a part the file and the record of part 0."""
    first, content = first_part(made)
    [(_, size, sha)] = first.files
    name = made.path(number)
    record = replace(first, part=number, files=((os.path.basename(name), size, sha),)).as_json()
    Path(name).write_bytes(content)
    place = Path(record_path(made, number))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(record) + "\n")
    return record


@functools.lru_cache(maxsize=1)
def first_part(made: Plan) -> tuple[Record, bytes]:
    """The record of part 0, and its file."""
    record = read_record(made, 0)
    assert record is not None
    return record, Path(made.path(0)).read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=parse_positive_size, default=200 << 20)
    parser.add_argument("--part-size", type=parse_positive_size, default=32 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--formats", default="u32,npy,megatron,datatrove,parquet")
    parser.add_argument("--parts", type=int, help="only: so many parts of one byte each")
    parser.add_argument("--run", type=int, default=200, help="of these, how many are encoded")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if args.parts:
            columns = ["step", "parts", "seconds", "ms a part", "peak memory of the driver"]
            turns.show(columns, beside_the_text(args, Path(name)))
        else:
            columns = ["MB/s", *JOBS, "two workers ÷ ceiling"]
            turns.show(columns, side_by_side(args, Path(name)))


if __name__ == "__main__":
    main()
