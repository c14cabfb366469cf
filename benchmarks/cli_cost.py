"""What the command line costs: `python -m benchmarks.cli_cost --size 200MB`.

Encodes one file again and again, in turns: whole, in memory, in a process that has read it already
(`encode_to_numpy`, the fastest call), and through `streamtok encode -o` with all that a file needs
(reading, writing, fsync, start of the process). Reports the ratio of the medians, for formats and
ways to cut the file into documents.
"""

from __future__ import annotations

import argparse
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
enc.encode_to_numpy("a")
begin = time.perf_counter()
enc.encode_to_numpy(data)
print(time.perf_counter() - begin)
"""

WAYS: dict[str, list[str]] = {
    "-o ids.bin": [],
    "-o ids.npy": [],
    "-o ids.bin --resume": ["--resume"],
    "--format megatron": ["--format", "megatron"],
    "-o ids.ds --lines": ["--lines"],
}


def in_memory(path: Path, encoding: str) -> float:
    """Seconds of one encode of the whole file, read before."""
    command = [sys.executable, "-c", _IN_MEMORY, str(path), encoding]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def through_cli(path: Path, folder: Path, encoding: str, way: str, options: list[str]) -> float:
    """Seconds of one process, from its start to its end."""
    name = way.split()[1] if way.startswith("-o") else "ids"
    command = [sys.executable, "-m", "streamtok", "encode", "-q", "-e", encoding, str(path)]
    begin = time.perf_counter()
    subprocess.run([*command, "-o", str(folder / name), *options], check=True)
    return time.perf_counter() - begin


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
        seconds: dict[str, list[float]] = {way: [] for way in ["in memory", *WAYS]}
        for _ in range(options.rounds):
            seconds["in memory"].append(in_memory(path, options.encoding))
            for way, more in WAYS.items():
                seconds[way].append(through_cli(path, folder, options.encoding, way, more))
        whole = statistics.median(seconds["in memory"])
        size = path.stat().st_size
        print(f"{size:,} bytes, {options.encoding}, median of {options.rounds} rounds\n")
        print("| way | seconds | MB/s | of in memory |\n|---|---|---|---|")
        for way, found in seconds.items():
            median = statistics.median(found)
            print(f"| {way} | {median:.2f} | {size / median / 1e6:.1f} | {median / whole:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
