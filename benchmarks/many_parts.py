"""What parts cost beside their text: `python -m benchmarks.scale --parts 1_000_000`.

A plan with so many parts, of one line of one byte each, goes through all that a driver does: it is
made, saved, loaded and compared, given out to two workers, and committed. The first parts (`--run`)
are really encoded. The others get the files and records that these would, with their own numbers,
from a worker that does no more than that; the driver does not see a difference. --on-ray: tasks of
Ray instead of two workers.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from streamtok import Plan, commit, plan
from streamtok.parallel.worker_processes import answer_numbers
from streamtok.parts import workers
from streamtok.parts.commit import missing_parts
from streamtok.parts.part import Record, read_record, record_path

Run: TypeAlias = Callable[[Plan, "array[int]", "array[int]", bool], None]

_PROGRAM = "import sys; from benchmarks.many_parts import run_copier; run_copier(sys.argv[1])"


def measure(parts: int, really: int, on_ray: bool) -> None:
    """Print the time of each step, and the memory of this process after it."""
    with tempfile.TemporaryDirectory() as top, contextlib.ExitStack() as stack:
        source = Path(top) / "lines"
        source.write_bytes(b"\n" * parts)
        out = os.path.join(top, "out")
        print("| step | parts | seconds | ms a part | peak memory of the driver |")
        print("|---|--:|--:|--:|--:|")
        row("start", 0, time.perf_counter())
        begin = time.perf_counter()
        made = plan(
            str(source), out, encoding="gpt2", format="u32", part_size=1, lines=True, sidecar=False
        )
        row("plan", parts, begin)
        begin = time.perf_counter()
        size = os.path.getsize(made.save())
        row("save", parts, begin)
        begin = time.perf_counter()
        made.save()
        row("load and compare", parts, begin)
        begin = time.perf_counter()
        waiting = array("q", missing_parts(made))
        row("what is missing", parts, begin)
        done = array("q")
        run = run_on_ray(stack) if on_ray else run_by_workers
        where = "Ray, 2 CPUs" if on_ray else "2 workers"
        begin = time.perf_counter()
        run(made, waiting[:really], done, False)
        row(f"run, {where}", really, begin)
        begin = time.perf_counter()
        run(made, waiting[really:], done, True)
        row(f"give out, {where} that copy", parts - really, begin)
        if sorted(done) != list(range(parts)):
            raise SystemExit("parts are missing")
        begin = time.perf_counter()
        totals = commit(made)
        row("commit", parts, begin)
        if totals.documents != parts or next(missing_parts(made), None) is not None:
            raise SystemExit(f"the totals are wrong: {totals}")
        print(f"the plan has {size / parts:.0f} bytes a part")


def run_by_workers(made: Plan, numbers: array[int], done: array[int], is_copy: bool) -> None:
    """Run parts in two processes."""
    if is_copy:
        workers._PROGRAM = _PROGRAM
    workers.run_parts(made, numbers, 2, lambda record: done.append(record.part))


def run_on_ray(stack: contextlib.ExitStack) -> Run:
    """Start Ray with two CPUs; what runs parts there."""
    import ray

    import streamtok.ray

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    stack.callback(ray.shutdown)
    row("start of Ray", 0, time.perf_counter())

    def run(made: Plan, numbers: array[int], done: array[int], is_copy: bool) -> None:
        if is_copy:
            streamtok.ray._work = _copy_on_ray
        streamtok.ray.run_parts(made, numbers, advance=lambda record: done.append(record.part))

    return run


def _copy_on_ray(shared: list[Any], digest: str, number: int) -> dict[str, Any]:
    import ray

    import streamtok.ray

    plans = streamtok.ray._plans
    if digest not in plans:
        plans[digest] = ray.get(shared[0])
    return copy_part(plans[digest], number)


def row(step: str, parts: int, begin: float) -> None:
    """Print a line of the table."""
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak *= 1 if sys.platform == "darwin" else 1024
    each = f"{seconds / parts * 1e3:.3f}" if parts else ""
    print(f"| {step} | {parts:,} | {seconds:.1f} | {each} | {peak >> 20} MiB |", flush=True)


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
