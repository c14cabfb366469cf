"""What the command line costs: `python -m benchmarks.cli_cost --size 300MB`.

Encodes one file again and again, in turns: in memory, in a new process that has read it already
(`encode_to_numpy`, whole and in chunks of 64 KiB), and through `streamtok encode -o` as people call
it, with all that a file needs (start of the process, reading, writing, SHA-256, fsync). Each round
gives a ratio to either way in memory; reported are medians. In memory there is one thread, the
command line takes two; with `--threads 1` it encodes on one, and still writes on another. So the
ratio of the clock needs two free cores; where others use the machine, too, that of the processor's
seconds is steadier.

As where the package is installed, its modules are compiled before, and no old output is in the way.
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

MEMORY = {"in memory, whole": 0, "in memory, 64 KiB": 1 << 16}  # size of the chunks
WAYS: dict[str, list[str]] = {
    "-o ids.bin": [],
    "-o ids.bin --threads 1": ["--threads", "1"],
    "-o ids.npy": [],
    "-o ids.bin --resume": ["--resume"],
    "--format megatron": ["--format", "megatron"],
    "-o ids.ds --lines": ["--lines"],
}


def environment(folder: Path) -> dict[str, str]:
    """dict: ours, with a place for compiled modules."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def in_memory(path: Path, encoding: str, size: int, env: dict[str, str]) -> tuple[float, float]:
    """Seconds and processor seconds of one encode of the file, read before; size: of the chunks."""
    command = [sys.executable, "-c", _IN_MEMORY, str(path), encoding, str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    seconds, cpu = done.stdout.split()
    return float(seconds), float(cpu)


def through_cli(
    path: Path, folder: Path, encoding: str, way: str, options: list[str], env: dict[str, str]
) -> tuple[float, float]:
    """Seconds and processor seconds of one process, from its start to its end."""
    name = way.split()[1] if way.startswith("-o") else "ids"
    command = [
        sys.executable,
        "-m",
        "streamtok",
        "encode",
        "-q",
        "--force",
        "-e",
        encoding,
        str(path),
    ]
    begin = time.perf_counter()
    process = subprocess.Popen([*command, "-o", str(folder / name), *options], env=env)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{way}: exit code {process.returncode}")
    for made in folder.glob("ids*"):
        made.unlink()
    return seconds, usage.ru_utime + usage.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cli_cost", description=__doc__)
    parser.add_argument("--size", type=parse_size, default="300MB")
    parser.add_argument("--encoding", default="cl100k_base")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="PART", help="of the name of a way")
    options = parser.parse_args()
    ways = {way: more for way, more in WAYS.items() if options.only in way}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = environment(folder)
        path = folder / "text"
        make(path, options.size)
        (folder / "empty").touch()
        through_cli(folder / "empty", folder, options.encoding, "nothing", [], env)
        found: dict[str, list[tuple[float, float]]] = {
            way: [] for way in [*MEMORY, "nothing", *ways]
        }
        for _ in range(options.rounds):
            for way, size in MEMORY.items():
                found[way].append(in_memory(path, options.encoding, size, env))
            for way, more in {"nothing": [], **ways}.items():
                source = folder / "empty" if way == "nothing" else path
                found[way].append(through_cli(source, folder, options.encoding, way, more, env))
        print(f"{path.stat().st_size:,} bytes, {options.encoding}, {options.rounds} rounds\n")
    for name, i in (("seconds", 0), ("processor seconds", 1)):
        print(f"| way | {name} | of one call in memory | of chunks in memory |\n|---|---|---|---|")
        for way, rows in found.items():
            row = f"| {way} | {statistics.median(one[i] for one in rows):.2f} "
            for base in MEMORY:
                pairs = zip(rows, found[base], strict=True)
                row += f"| {statistics.median(one[i] / other[i] for one, other in pairs):.2f} "
            print(f"{row}|")
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
