"""What the command line costs: `python -m benchmarks.command_line --size 300MB`.

Encodes one file again and again, in turns: in memory, in a new process that has read it already
(`encode_to_numpy`, whole and in chunks of 64 KiB), and through `streamtok encode -o` as people call
it, with all that a file needs (start of the process, reading, writing, SHA-256, fsync). Each round
gives a ratio to either way in memory; reported are medians. In memory there is one thread, the
command line takes two; with `--threads 1` it encodes on one, and still writes on another. So the
ratio of the clock needs two free cores; where others use the machine, too, that of the processor's
seconds is steadier. Peak memory is the kernel's figure for the whole process.

Ids first: they must decode to the file, and those of the first 20 MB be tiktoken's, whose speed is
a row. A line of the file comes back after some 15 MB: see compare.py for text that is new.
As where the package is installed, its modules are compiled before, and no old output is in the way.

With `--feeds`, one run for each source and each sink instead, of the text packed in every way:
seconds and peak memory.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from streamtok.cli.argument_types import parse_positive_size

from .processes import environment

_SAMPLE_BYTES = 20_000_000

_IN_MEMORY = """
import sys, time, streamtok
enc = streamtok.get_encoding(sys.argv[2])
data = open(sys.argv[1], "rb").read()
size = int(sys.argv[3]) or len(data)
stream = enc.stream_encoder()
stream.encode_to_numpy("a", final=True)
begin, begin_cpu = time.perf_counter(), time.process_time()
for at in range(0, len(data), size):
    stream.encode_to_numpy(data[at : at + size])
stream.encode_to_numpy(b"", final=True)
print(time.perf_counter() - begin, time.process_time() - begin_cpu)
"""

MEMORY = {"in memory, whole": 0, "in memory, 64 KiB": 1 << 16}  # size of the chunks
WAYS: dict[str, list[str]] = {
    "-o ids.bin": [],
    "-o ids.bin --threads 1": ["--threads", "1"],
    "-o ids.npy": [],
    "-o ids.bin --resume": ["--resume"],
    "--format megatron": ["--format", "megatron"],
    "-o ids.ds --lines": ["--lines"],
}
# A child's peak begins with the size of its parent: other processes make the files.
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
# name: (the file that it needs, options)
SOURCES: dict[str, tuple[str, list[str]]] = {
    "plain": ("text", ["text"]),
    "gzip": ("gz", ["gz"]),
    "zstd": ("zst", ["zst"]),
    "xz": ("xz", ["xz"]),
    "bzip2": ("bz2", ["bz2"]),
    "--lines": ("text", ["text", "--lines"]),
    "--delimiter (none is there)": ("text", ["text", "--delimiter", r"\x00\x01"]),
    "--jsonl": ("jsonl", ["jsonl", "--jsonl", "text"]),
    "--parquet": ("parquet", ["parquet", "--parquet", "text"]),
    "standard input": ("text", ["-"]),
    "--follow": ("text", ["--follow", "text"]),
}
SINKS: dict[str, list[str]] = {
    "u32 with a sidecar": ["-o", "out.bin"],
    "npy": ["-o", "out.npy"],
    "text": ["-o", "out.txt"],
    "jsonl": ["-o", "out.jsonl"],
    "llmc": ["-o", "out", "--format", "llmc"],
    "megatron": ["-o", "out", "--format", "megatron"],
    "datatrove": ["-o", "out.ds"],
    "parquet": ["-o", "out.parquet"],
    "arrow": ["-o", "out.arrow"],
    "shards, --resume": ["-o", "out.bin", "--shard-tokens", "10M", "--resume"],
}


class Cost(NamedTuple):
    """Of one run: seconds, seconds of the processor, bytes of peak memory (0: not known)."""

    seconds: float
    cpu: float
    peak: int = 0


def in_memory(path: Path, encoding: str, size: int, env: dict[str, str]) -> Cost:
    """One encode of the file, read before; size: of the chunks."""
    command = [sys.executable, "-c", _IN_MEMORY, str(path), encoding, str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return Cost(*map(float, done.stdout.split()))


def through_cli(folder: Path, options: list[str], env: dict[str, str]) -> Cost:
    """One process in a folder, from its start to its end.

    The kernel's figure for a child begins with the parent's size: this process must be small.
    """
    command = [sys.executable, "-m", "streamtok", "encode", "-q", "--force", *options]
    source = (folder / "text").open("rb") if "-" in options else subprocess.DEVNULL
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=source)
    if "--follow" in options:
        size = (folder / "text").stat().st_size
        gone = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while position(process.pid, folder / "text") < size:
            if os.waitid(os.P_PID, process.pid, gone):
                break
            time.sleep(0.05)
        time.sleep(1)  # it encodes what it has read last
        process.send_signal(signal.SIGTERM)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"streamtok encode {' '.join(options)}: exit code {process.returncode}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peak)


def position(pid: int, path: Path) -> int:
    """How far a process has read a file that it has open (Linux)."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if link.resolve() == path.resolve():
                info = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
                return int(info.split()[1])
        except OSError:
            continue
    return 0


def check(path: Path, out: Path, encoding: str) -> str:
    """Compare the ids in a file of uint32; what to say about tiktoken. SystemExit if one differs.

    The last ids of what tiktoken gets depend on what follows: not compared.
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
        return "tiktoken is not installed: not compared"
    with path.open("rb") as file:
        data = file.read(_SAMPLE_BYTES)
    text = data[: data.rfind(b"\n") + 1].decode()
    with tempfile.TemporaryDirectory() as folder:
        peers.write_assets(Path(folder), [encoding])
        tiktoken = peers.by_name("tiktoken")(encoding, Path(folder)).mode("encode_to_numpy")
    tiktoken("a")
    begin = time.perf_counter()
    expected = tiktoken(text)[:-64]
    speed = len(text.encode()) / (time.perf_counter() - begin) / 1e6
    if not np.array_equal(ids[: len(expected)], expected):
        raise SystemExit("the ids differ from tiktoken's")
    return f"the first {len(expected):,} ids are tiktoken's, at {speed:.1f} MB/s on one thread"


def table(found: dict[str, list[Cost]], size: int) -> None:
    """Print medians, and medians of the ratios of each round to both ways in memory."""
    for name, i in (("seconds", 0), ("processor seconds", 1)):
        print(f"| way | {name} | of one call in memory | of chunks in memory | MB/s | peak MB |")
        print("|---|--:|--:|--:|--:|--:|")
        for way, rows in found.items():
            middle = statistics.median(one[i] for one in rows)
            row = f"| {way} | {middle:.2f} "
            for base in MEMORY:
                pairs = zip(rows, found[base], strict=True)
                row += f"| {statistics.median(one[i] / other[i] for one, other in pairs):.2f} "
            peak = statistics.median(one.peak for one in rows) / 1e6
            speed = "" if way == "nothing" else f"{size / middle / 1e6:.0f}"
            print(f"{row}| {speed} | {f'{peak:.0f}' if peak else ''} |")
        print()


def make(folder: Path, name: str, size: int, env: dict[str, str]) -> None:
    """Make the text, or pack it, unless it is there."""
    if not (folder / name).exists():
        command = [sys.executable, "-c", _MAKE, str(folder), name, str(size)]
        subprocess.run(command, check=True, env=env)


def remove(folder: Path, pattern: str) -> None:
    for made in folder.glob(pattern):
        made.unlink()


def ways(folder: Path, env: dict[str, str], options: argparse.Namespace) -> None:
    """Time all ways in turns."""
    chosen = {way: more for way, more in WAYS.items() if options.only in way}
    found: dict[str, list[Cost]] = {way: [] for way in [*MEMORY, "nothing", *chosen]}
    path, encoding = folder / "text", ["-e", options.encoding, "-o"]
    (folder / "empty").touch()
    through_cli(folder, ["empty", *encoding, "ids.u32"], env)  # compiles
    for _ in range(options.rounds):
        for way, size in MEMORY.items():
            found[way].append(in_memory(path, options.encoding, size, env))
        for way, more in {"nothing": [], **chosen}.items():
            out = way.split()[1] if way.startswith("-o") else "ids"
            source = "empty" if way == "nothing" else "text"
            found[way].append(through_cli(folder, [source, *encoding, out, *more], env))
            remove(folder, "ids*")
    through_cli(folder, ["text", *encoding, "ids.u32"], env)
    print(f"{options.rounds} rounds; all ids decode to the same bytes;")
    print(f"{check(path, folder / 'ids.u32', options.encoding)}\n")
    table(found, path.stat().st_size)


def feeds(folder: Path, env: dict[str, str], options: argparse.Namespace) -> None:
    """Run every source and every sink once."""
    print("| source or sink | peak MB | seconds |\n|---|--:|--:|")
    rows = [(f"from {key}", needs, [*more, "-o", "out.bin"])
            for key, (needs, more) in SOURCES.items()]  # fmt: skip
    rows += [(f"to {key}, a document a line", "text", ["text", "--lines", *more])
             for key, more in SINKS.items()]  # fmt: skip
    rows += [(f"to {key}, one document", "text", ["text", *SINKS[key]])
             for key in ("jsonl", "megatron", "parquet")]  # fmt: skip
    for key, needs, more in rows:
        if options.only in key:
            make(folder, needs, options.size, env)
            cost = through_cli(folder, [*more, "-e", options.encoding], env)
            print(f"| {key} | {cost.peak / 1e6:.1f} | {cost.seconds:.1f} |", flush=True)
            remove(folder, "out*")
            if needs != "text":
                (folder / needs).unlink()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.command_line", description=__doc__)
    parser.add_argument("--size", type=parse_positive_size, default="300MB")
    parser.add_argument("--encoding", default="cl100k_base")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="PART", help="of the name of a row")
    parser.add_argument("--feeds", action="store_true", help="every source and every sink, once")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = environment(folder)
        make(folder, "text", options.size, env)
        print(f"{(folder / 'text').stat().st_size:,} bytes of text, {options.encoding}\n")
        (feeds if options.feeds else ways)(folder, env, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
