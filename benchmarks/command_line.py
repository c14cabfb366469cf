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
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from .corpus import parse_size

ROOT = Path(__file__).resolve().parents[1]
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


class Cost(NamedTuple):
    """Of one run: seconds, seconds of the processor, bytes of peak memory (0: not known)."""

    seconds: float
    cpu: float
    peak: int = 0


def environment(folder: Path) -> dict[str, str]:
    """dict: ours, with a place for compiled modules, in which this checkout is found."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONPATH": path}


def peak_memory() -> int:
    """The most bytes that this process had resident, since it began or its figure was reset.

    The kernel's other figure, `ru_maxrss`, begins with the size of the parent.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024)
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def in_memory(path: Path, encoding: str, size: int, env: dict[str, str]) -> Cost:
    """One encode of the file, read before; size: of the chunks."""
    command = [sys.executable, "-c", _IN_MEMORY, str(path), encoding, str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return Cost(*map(float, done.stdout.split()))


def through_cli(path: Path, out: Path, encoding: str, more: list[str], env: dict[str, str]) -> Cost:
    """One process, from its start to its end.

    The kernel's figure for a child begins with the parent's size: this process must be small.
    """
    command = [sys.executable, "-m", "streamtok", "encode", "-q", "--force", str(path)]
    begin = time.perf_counter()
    process = subprocess.Popen([*command, "-e", encoding, "-o", str(out), *more], env=env)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"streamtok encode {' '.join(more)}: exit code {process.returncode}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peak)


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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.command_line", description=__doc__)
    parser.add_argument("--size", type=parse_size, default="300MB")
    parser.add_argument("--encoding", default="cl100k_base")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="PART", help="of the name of a way")
    options = parser.parse_args()
    ways = {way: more for way, more in WAYS.items() if options.only in way}
    found: dict[str, list[Cost]] = {way: [] for way in [*MEMORY, "nothing", *ways]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = environment(folder)
        path, empty, ids = folder / "text", folder / "empty", folder / "ids.u32"
        make = [sys.executable, "-m", "benchmarks.corpus", str(path), str(options.size)]
        subprocess.run(make, check=True, env=env)
        empty.touch()
        through_cli(empty, ids, options.encoding, [], env)  # compiles
        for _ in range(options.rounds):
            for way, size in MEMORY.items():
                found[way].append(in_memory(path, options.encoding, size, env))
            for way, more in {"nothing": [], **ways}.items():
                out = folder / (way.split()[1] if way.startswith("-o") else "ids")
                source = empty if way == "nothing" else path
                found[way].append(through_cli(source, out, options.encoding, more, env))
                for made in folder.glob("ids*"):
                    made.unlink()
        size = path.stat().st_size
        through_cli(path, ids, options.encoding, [], env)
        print(f"{size:,} bytes, {options.encoding}, {options.rounds} rounds; all ids decode to the")
        print(f"same bytes; {check(path, ids, options.encoding)}\n")
    table(found, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
