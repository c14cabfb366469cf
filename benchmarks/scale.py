"""Jobs in parts, side by side: `python -m benchmarks.scale --size 400MB`.

Serial is the plan in one worker; the ceiling is two processes that each encode one half of the text
for themselves, at the same time. All kinds must write the same bytes (SHA-256), or nothing is
printed. The kinds take turns, and the figures are medians of ratios.

--parts 1_000_000: instead, what parts cost beside their text. A plan with so many parts, of one
line of one byte each, goes through all that a driver does: it is made, saved, loaded and compared,
given out to two workers, and committed. The first parts (`--run`) are really encoded. The others
get the files and records that these would, with their own numbers, from a worker that does no more
than that; the driver does not see a difference.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import os
import resource
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
from streamtok.cli.argument_types import parse_positive_size
from streamtok.parallel.worker_processes import answer_numbers
from streamtok.parts import workers
from streamtok.parts.commit import missing_parts
from streamtok.parts.part import Record, read_record, record_path

from . import corpus

FORMATS = ["u32", "npy", "megatron", "datatrove", "parquet"]
_COPIER = "import sys; from benchmarks.scale import run_copier; run_copier(sys.argv[1])"
_HALF = (
    "import sys; from streamtok import Plan, run_part; made = Plan.load(sys.argv[1])\n"
    "for number in range(int(sys.argv[2]), len(made), 2): run_part(made, number)"
)

Job = Callable[[Plan], None]


def contents(made: Plan) -> str:
    """One digest of all files of the parts."""
    digest = hashlib.sha256()
    for path in sorted(Path(made.output).glob("part-*")):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def on_workers(count: int) -> Job:
    """The job in so many workers."""
    return lambda made: workers.run_parts(made, range(len(made)), count)


@contextlib.contextmanager
def ray() -> Iterator[Job]:
    """A Ray with two CPUs, whose workers have the environment of now; the job on it."""
    import ray

    import streamtok.ray

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        yield lambda made: streamtok.ray.run_parts(made, range(len(made)))
    finally:
        ray.shutdown()


def ceiling(made: Plan) -> None:
    """Two processes, each with every second part, that know nothing of each other."""
    path = made.save()
    both = [subprocess.Popen([sys.executable, "-c", _HALF, path, str(i)]) for i in range(2)]
    if any([one.wait() for one in both]):
        raise SystemExit("a process of the ceiling failed")


def side_by_side(args: argparse.Namespace, folder: str, stack: contextlib.ExitStack) -> None:
    """Print the table of formats."""
    kinds: dict[str, Job] = {
        "serial": on_workers(1),
        "--workers 2": on_workers(2),
        "ceiling": ceiling,
    }
    if not args.without_ray:
        kinds["Ray, 2 CPUs"] = stack.enter_context(ray())
    source = Path(folder) / "text"
    corpus.write_lines(source, args.size)
    print(f"{args.size >> 20} MiB of text, parts of {args.part_size >> 20} MiB")
    print("| format | " + " | ".join(kinds) + " | workers ÷ ceiling |")
    print("|---|" + "--:|" * (len(kinds) + 1))
    for format in args.formats.split(","):
        print(f"| {format} | {compared(source, folder, format, kinds, args)}", flush=True)


def compared(
    source: Path, folder: str, format: str, kinds: dict[str, Job], args: argparse.Namespace
) -> str:
    """The figures of a line. Raises SystemExit if the kinds wrote different bytes."""
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for turn in range(args.rounds):
        found = {}
        for kind, job in kinds.items():
            out = os.path.join(folder, f"{format}{turn}{len(found)}")
            made = plan(
                str(source), out, encoding="cl100k_base", format=format, part_size=args.part_size,
                lines=True, disallowed_special=(),
            )  # fmt: skip
            made.save()
            begin = time.perf_counter()
            job(made)
            commit(made)
            seconds[kind].append(time.perf_counter() - begin)
            found[kind] = contents(made)
            shutil.rmtree(out)
        if len(set(found.values())) != 1:
            raise SystemExit(f"{format}: the files are not the same: {found}")
    speeds = [f"{args.size / 1e6 / statistics.median(seconds[kind]):.0f} MB/s" for kind in kinds]
    pairs = zip(seconds["ceiling"], seconds["--workers 2"], strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    return " | ".join(speeds) + f" | {ratio:.2f} |"


# Parts of one byte.


def beside_the_text(parts: int, really: int, top: str) -> None:
    """Print the time of each step, and the memory of this process after it."""
    source, out = Path(top) / "lines", os.path.join(top, "out")
    source.write_bytes(b"\n" * parts)
    print("| step | parts | seconds | ms a part | peak memory of the driver |")
    print("|---|--:|--:|--:|--:|")

    def step(name: str, count: int, work: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak *= 1 if sys.platform == "darwin" else 1024
        each = f"{seconds / count * 1e3:.3f}" if count else ""
        print(f"| {name} | {count:,} | {seconds:.1f} | {each} | {peak >> 20} MiB |", flush=True)
        return result

    settings: dict[str, Any] = {"encoding": "gpt2", "format": "u32", "part_size": 1}
    made = step(
        "plan", parts, lambda: plan(str(source), out, lines=True, sidecar=False, **settings)
    )
    size = os.path.getsize(step("save", parts, made.save))
    step("load and compare", parts, made.save)
    waiting = step("what is missing", parts, lambda: array("q", missing_parts(made)))
    done = array("q")
    step("run, 2 workers", really, lambda: run(made, waiting[:really], done, False))
    step(
        "give out, 2 workers that copy",
        parts - really,
        lambda: run(made, waiting[really:], done, True),
    )
    if sorted(done) != list(range(parts)):
        raise SystemExit("parts are missing")
    totals = step("commit", parts, lambda: commit(made))
    if totals.documents != parts or next(missing_parts(made), None) is not None:
        raise SystemExit(f"the totals are wrong: {totals}")
    print(f"the plan has {size / parts:.0f} bytes a part")


def run(made: Plan, numbers: array[int], done: array[int], is_copy: bool) -> None:
    """Run parts in two processes."""
    if is_copy:
        workers._PROGRAM = _COPIER
    workers.run_parts(made, numbers, 2, lambda record: done.append(record.part))


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
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--without-ray", action="store_true")
    parser.add_argument("--parts", type=int, help="only: so many parts of one byte each")
    parser.add_argument("--run", type=int, default=200, help="of these, how many are encoded")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if args.parts is None:
            side_by_side(args, folder, stack)
        else:
            beside_the_text(args.parts, max(min(args.run, args.parts), 1), folder)


if __name__ == "__main__":
    main()
