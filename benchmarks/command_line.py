"""The cost of the command line: `python -m benchmarks.command_line --size 300MB`.

One file is encoded again and again, in turns: in memory, in a new process that has already read it
(`encode_to_numpy` on one thread), and through `streamtok encode -o`, with everything that a file
needs (start of the process, reading, writing, SHA-256, fsync). The figures are medians; ratios are
taken within each round. The command uses two threads. With `--threads 1` it encodes on one, and
still writes on another; on a busy machine, compare processor seconds. `--feeds` measures every
source and every sink instead. Peak memory is the kernel's figure.

First the ids are checked: they must decode to the file, and those of the first 20 MB must be
tiktoken's. Lines of the file repeat after about 15 MB; see compare.py for new text. As in an
installed package, modules are compiled beforehand, and old output is removed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from streamtok.jobs.argument_types import parse_positive_size

from . import turns

_SAMPLE_BYTES = 20_000_000
_IN_MEMORY = """
import sys, time, streamtok
enc = streamtok.get_encoding(sys.argv[2])
data = open(sys.argv[1], "rb").read()
enc.encode_to_numpy("a")
begin, begin_cpu = time.perf_counter(), time.process_time()
enc.encode_to_numpy(data)
print(time.perf_counter() - begin, time.process_time() - begin_cpu)
"""
# A child's peak memory begins at the size of its parent, so other processes make and compare files.
_MAKE = """
import bz2, gzip, itertools, json, lzma, pathlib, shutil, sys
folder, name, size = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
def lines():
    return open(folder / "text", encoding="utf-8", newline="\\n")
def pack(target):
    with target, open(folder / "text", "rb") as source:
        shutil.copyfileobj(source, target, 1 << 20)
if name == "text":
    from benchmarks.corpus import write_lines
    write_lines(folder / name, size)
elif name == "gz":
    pack(gzip.open(folder / name, "wb", 1))
elif name == "zst":
    import zstandard
    pack(zstandard.open(folder / name, "wb"))
elif name == "xz":
    pack(lzma.open(folder / name, "wb", preset=0))
elif name == "bz2":
    pack(bz2.open(folder / name, "wb", 1))
elif name == "jsonl":
    open(folder / name, "w").writelines(json.dumps({"text": line}) + "\\n" for line in lines())
elif name == "parquet":
    import pyarrow as pa, pyarrow.parquet as pq
    schema, rows = pa.schema([("text", pa.string())]), lines()
    with pq.ParquetWriter(folder / name, schema) as writer:
        while some := list(itertools.islice(rows, 100_000)):
            writer.write_table(pa.table({"text": some}, schema))
"""
MEMORY = "in memory"
_CHECK = """
import sys; from pathlib import Path; from benchmarks.command_line import check
print(check(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
"""
# Names of rows: the input file, then the options.
WAYS = [
    *("text -o out.bin", "text -o out.bin --threads 1", "text -o out.npy"),
    *("text -o out.bin --resume", "text -o out --format megatron", "text -o out.ds --lines"),
]
_LINES = "text --lines -o out"
FEEDS = [
    *(f"{name} -o out.bin" for name in ("text", "gz", "zst", "xz", "bz2")),
    *("jsonl --jsonl text -o out.bin", "parquet --parquet text -o out.bin"),
    *(r"text --delimiter \x00\x01 -o out.bin", "- -o out.bin"),
    *(_LINES + name for name in (".bin", ".npy", ".txt", ".jsonl", ".ds", ".parquet")),
    _LINES + " --format megatron",
    _LINES + ".bin --shard-tokens 10M --resume",
    *("text -o out.jsonl", "text -o out --format megatron", "text -o out.parquet"),
]


class Cost(NamedTuple):
    """The seconds, processor seconds and bytes of peak memory (0: unknown) of one run."""

    seconds: float
    cpu: float
    peak: int = 0


def in_memory(path: Path, encoding: str, env: dict[str, str]) -> Cost:
    """Encode the file once, after it has been read."""
    command = [sys.executable, "-c", _IN_MEMORY, str(path), encoding]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return Cost(*map(float, done.stdout.split()))


def through_cli(folder: Path, options: list[str], env: dict[str, str]) -> Cost:
    """One process in a folder, from start to end.

    The kernel's figure for a child's memory begins at its parent's: this process must be small.
    """
    command = [sys.executable, "-m", "streamtok", "encode", "-q", "--force", *options]
    source = (folder / "text").open("rb") if "-" in options else subprocess.DEVNULL
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=source)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"streamtok encode {' '.join(options)}: exit code {process.returncode}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peak)


def check(path: Path, out: Path, encoding: str) -> str:
    """Check the ids in a file of uint32; return what to print. SystemExit if one differs.

    The last ids of tiktoken's sample depend on the text after it, so they are not compared.
    """
    import numpy as np

    import streamtok

    from . import peers

    ids = np.memmap(out, "<u4", "r")
    decode = streamtok.get_encoding(encoding).decode_bytes
    with path.open("rb") as file:
        for at in range(0, len(ids), 1 << 20):
            part = decode(ids[at : at + (1 << 20)].astype(np.uint32))
            if file.read(len(part)) != part:
                raise SystemExit("the ids do not decode to the file")
        if file.read(1):
            raise SystemExit("the ids decode to less than the file")
    if not peers.by_name("tiktoken").is_installed():
        return "All ids decode to the file. tiktoken is not installed: not compared\n"
    with path.open("rb") as file:
        data = file.read(_SAMPLE_BYTES)
    text = data[: data.rfind(b"\n") + 1].decode()
    with tempfile.TemporaryDirectory() as folder:
        peers.write_assets(Path(folder), [encoding])
        tiktoken = peers.by_name("tiktoken")(encoding, Path(folder)).mode("encode_to_numpy")
    expected = tiktoken(text)[:-64]
    if not np.array_equal(ids[: len(expected)], expected):
        raise SystemExit("the ids differ from tiktoken's")
    return f"All ids decode to the file, the first {len(expected):,} are tiktoken's.\n"


def make(folder: Path, name: str, size: int, env: dict[str, str]) -> None:
    """Make the text, or compress it, unless the file exists."""
    if not (folder / name).exists():
        command = [sys.executable, "-c", _MAKE, str(folder), name, str(size)]
        subprocess.run(command, check=True, env=env)


def rows(folder: Path, env: dict[str, str], options: argparse.Namespace) -> Iterator[list[str]]:
    """Time the chosen rows in turns."""
    chosen = [row for row in (FEEDS if options.feeds else WAYS) if options.only in row]
    for row in chosen:
        name = row.split()[0]
        make(folder, "text" if name == "-" else name, options.size, env)

    def run(row: str) -> Cost:
        if row == MEMORY:
            return in_memory(folder / "text", options.encoding, env)
        for made in folder.glob("out*"):
            made.unlink()
        return through_cli(folder, [*row.split(), "-e", options.encoding], env)

    run("text -o out.bin")  # compiles
    rounds = [{row: run(row) for row in (MEMORY, *chosen)} for _ in range(options.rounds)]
    size = (folder / "text").stat().st_size / 1e6
    for row in (MEMORY, *chosen):
        seconds, cpu, peak = map(statistics.median, zip(*(x[row] for x in rounds), strict=True))
        clock, work = (
            turns.ratio((x[row][i] for x in rounds), (x[MEMORY][i] for x in rounds)) for i in (0, 1)
        )
        figures = [f"{one:.2f}" for one in (seconds, clock, cpu, work)]
        yield [f"`{row}`", f"{size / seconds:.0f}", *figures, f"{peak / 1e6:.0f}"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.command_line", description=__doc__)
    parser.add_argument("--size", type=parse_positive_size, default="300MB")
    parser.add_argument("--encoding", default="cl100k_base")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="PART", help="of the name of a row")
    parser.add_argument("--feeds", action="store_true", help="every source and every sink")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = turns.environment(folder)
        make(folder, "text", options.size, env)
        through_cli(folder, ["text", "-e", options.encoding, "-o", "ids.u32"], env)
        arguments = [str(folder / "text"), str(folder / "ids.u32"), options.encoding]
        subprocess.run([sys.executable, "-c", _CHECK, *arguments], check=True, env=env)
        columns = ["", "MB/s", "seconds", "of memory", "processor", "of memory", "peak MB"]
        turns.show(columns, rows(folder, env, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
