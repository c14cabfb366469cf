"""What parts cost beside their text: `python -m benchmarks.scale --parts 1_000_000`.

A plan with so many parts, of one line of one byte each, goes through all that a driver does: it is
made, saved, loaded and compared, given out to two workers, and committed. The first parts (`--run`)
are really encoded. The others get the files and records that these would, with their own numbers,
from a worker that does no more than that; the driver does not see a difference.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from array import array
from dataclasses import replace
from pathlib import Path

from streamtok import Plan, commit, plan
from streamtok.parallel.worker_processes import answer_numbers
from streamtok.parts import workers
from streamtok.parts.commit import missing_parts
from streamtok.parts.part import read_record, record_path

_PROGRAM = "import sys; from benchmarks.many_parts import run_copier; run_copier(sys.argv[1])"


def measure(parts: int, really: int, folder: str | None = None) -> None:
    """Print the time of each step, and the memory of this process after it."""
    with tempfile.TemporaryDirectory(dir=folder) as top:
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
        begin = time.perf_counter()
        workers.run_parts(made, waiting[:really], 2, lambda record: done.append(record.part))
        row("run, 2 workers", really, begin)
        workers._PROGRAM = _PROGRAM
        begin = time.perf_counter()
        workers.run_parts(made, waiting[really:], 2, lambda record: done.append(record.part))
        row("give out, 2 workers that copy", parts - really, begin)
        if sorted(done) != list(range(parts)):
            raise SystemExit("parts are missing")
        begin = time.perf_counter()
        totals = commit(made)
        row("commit", parts, begin)
        if totals.documents != parts or next(missing_parts(made), None) is not None:
            raise SystemExit(f"the totals are wrong: {totals}")
        print(f"the plan has {size / parts:.0f} bytes a part")


def row(step: str, parts: int, begin: float) -> None:
    """Print a line of the table."""
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak *= 1 if sys.platform == "darwin" else 1024
    each = f"{seconds / parts * 1e3:.3f}" if parts else ""
    print(f"| {step} | {parts:,} | {seconds:.1f} | {each} | {peak >> 20} MiB |", flush=True)


def run_copier(path: str) -> None:
    """Be a worker that gives each part the file and the record of part 0."""
    made = Plan.load(path)
    first = read_record(made, 0)
    assert first is not None
    [(_, size, sha)] = first.files
    content = Path(made.path(0)).read_bytes()

    def work(number: int) -> dict[str, object]:
        name = made.path(number)
        record = replace(first, part=number, files=((os.path.basename(name), size, sha),))
        Path(name).write_bytes(content)
        place = Path(record_path(made, number))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(record.as_json()) + "\n")
        return record.as_json()

    answer_numbers(work)
