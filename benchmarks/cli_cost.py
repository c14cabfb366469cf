"""What the command line costs: `python -m benchmarks.cli_cost --size 200MB`.

Encodes one file again and again, in turns: in memory, in a process that has read it already
(`encode_to_numpy`, whole and in chunks of 64 KiB), and through `streamtok encode -o` with all that
a file needs (start of the process, reading, writing, fsync). Reports medians and their ratio to the
faster of the two in memory, for formats and ways to cut the file into documents. Seconds of the
processor are steadier than those of the clock where others use the machine, too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .big_file import make, parse_size

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

WAYS: dict[str, list[str]] = {
    "-o ids.bin": [],
    "-o ids.npy": [],
    "-o ids.bin --resume": ["--resume"],
    "--format megatron": ["--format", "megatron"],
    "-o ids.ds --lines": ["--lines"],
}


def in_memory(path: Path, encoding: str, size: int) -> tuple[float, float]:
    """Seconds and processor seconds of one encode of the file, read before; size: of the chunks."""
    command = [sys.executable, "-c", _IN_MEMORY, str(path), encoding, str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, cpu = done.stdout.split()
    return float(seconds), float(cpu)


def through_cli(
    path: Path, folder: Path, encoding: str, way: str, options: list[str]
) -> tuple[float, float]:
    """Seconds and processor seconds of one process, from its start to its end."""
    name = way.split()[1] if way.startswith("-o") else "ids"
    command = [sys.executable, "-m", "streamtok", "encode", "-q", "-e", encoding, str(path)]
    begin = time.perf_counter()
    process = subprocess.Popen([*command, "-o", str(folder / name), *options])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{way}: exit code {process.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cli_cost", description=__doc__)
    parser.add_argument("--size", type=parse_size, default="200MB")
    parser.add_argument("--encoding", default="cl100k_base")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "text"
        make(path, options.size)
        (folder / "empty").touch()
        found: dict[str, list[tuple[float, float]]] = {
            way: [] for way in ["in memory, whole", "in memory, 64 KiB", "nothing", *WAYS]
        }
        for _ in range(options.rounds):
            found["in memory, whole"].append(in_memory(path, options.encoding, 0))
            found["in memory, 64 KiB"].append(in_memory(path, options.encoding, 1 << 16))
            for way, more in {"nothing": [], **WAYS}.items():
                source = folder / "empty" if way == "nothing" else path
                found[way].append(through_cli(source, folder, options.encoding, way, more))
        size = path.stat().st_size
        rows = {
            way: [statistics.median(x) for x in zip(*f, strict=True)] for way, f in found.items()
        }
        best = [min(x) for x in zip(*list(rows.values())[:2], strict=True)]
        print(f"{size:,} bytes, {options.encoding}, median of {options.rounds} rounds\n")
        print("| way | s | of in memory | processor s | of in memory |\n|---|---|---|---|---|")
        for way, (wall, cpu) in rows.items():
            print(f"| {way} | {wall:.2f} | {wall / best[0]:.2f} ", end="")
            print(f"| {cpu:.2f} | {cpu / best[1]:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
