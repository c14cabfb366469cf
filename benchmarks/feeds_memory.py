"""Peak memory of every source and sink: `python -m benchmarks.feeds_memory --size 1GB`.

Makes one text and packs it in every way, then runs `streamtok encode` once for each source and once
for each sink, and prints what the kernel counted as that process's peak (`ru_maxrss`), and the most
that was seen of its private memory (`RssAnon`): the rest are pages of libraries on the disk, which
all processes share; pyarrow has some 40 MB of them. `--only` picks rows by a part of their name.

Everything is made by other processes, for a child's figure begins with the size of its parent.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .corpus import parse_size

_MAKE = {
    "text": "from benchmarks.corpus import write_lines; write_lines(p('text'), size)",
    "gz": "copy(gzip.open(p('gz'), 'wb', 1))",
    "zst": "import zstandard; copy(zstandard.open(p('zst'), 'wb'))",
    "xz": "copy(lzma.open(p('xz'), 'wb', preset=0))",
    "bz2": "copy(bz2.open(p('bz2'), 'wb', 1))",
    "jsonl": "lines = open(p('text'), encoding='utf-8', newline='\\n')\n"
    "open(p('jsonl'), 'w').writelines(json.dumps({'text': line}) + '\\n' for line in lines)",
    "parquet": "import pyarrow as pa, pyarrow.parquet as pq\n"
    "lines = open(p('text'), encoding='utf-8', newline='\\n')\n"
    "schema = pa.schema([('text', pa.string())])\n"
    "with pq.ParquetWriter(p('parquet'), schema) as writer:\n"
    "    while some := list(itertools.islice(lines, 100_000)):\n"
    "        writer.write_table(pa.table({'text': some}, schema))",
}
_PRELUDE = """
import bz2, gzip, itertools, json, lzma, pathlib, shutil, sys
folder, size = pathlib.Path(sys.argv[1]), int(sys.argv[2])
p = lambda name: folder / name
def copy(target):
    with target, open(p('text'), 'rb') as source:
        shutil.copyfileobj(source, target, 1 << 20)
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


def make(folder: Path, name: str, size: int) -> None:
    """Make one of the inputs, unless it is there."""
    if not (folder / name).exists():
        if name != "text":
            make(folder, "text", size)
        code = _PRELUDE + _MAKE[name]
        subprocess.run([sys.executable, "-c", code, str(folder), str(size)], check=True)


def measure(folder: Path, options: list[str], fed: str = "") -> tuple[float, float, float]:
    """(peak MB, private MB, seconds) of one run in the folder; fed: how its text comes."""
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "streamtok", "encode", "-q", "--force", *options]
    source = (folder / "text").open("rb") if fed == "stdin" else subprocess.DEVNULL
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, stdin=source, env={**os.environ, "PYTHONPATH": path}
    )
    size = (folder / "text").stat().st_size
    private, is_ended, status = 0.0, False, 0
    while True:
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            break
        private = max(private, anonymous(process.pid))
        if fed == "follow" and not is_ended and position(process.pid, folder / "text") >= size:
            time.sleep(1)  # it encodes what it has read last
            process.send_signal(signal.SIGTERM)
            is_ended = True
        time.sleep(0.05)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(options)}: exit code {process.returncode}")
    return usage.ru_maxrss * 1024 / 1e6, private, seconds


def anonymous(pid: int) -> float:
    """MB of memory that is of no file (Linux)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return int(found[1]) * 1024 / 1e6 if found else 0.0


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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.feeds_memory", description=__doc__)
    parser.add_argument("--size", type=parse_size, default="300MB")
    parser.add_argument("--only", default="", metavar="PART")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, "text", options.size)
        print(f"{(folder / 'text').stat().st_size:,} bytes of text, cl100k_base\n")
        print("| source or sink | peak MB | of it private | seconds |\n|---|---|---|---|")
        rows = [(f"from {key}", needs, more, ["-o", "out.bin"])
                for key, (needs, more) in SOURCES.items()]  # fmt: skip
        rows += [(f"to {key}, a document a line", "text", ["text", "--lines"], more)
                 for key, more in SINKS.items()]  # fmt: skip
        rows += [(f"to {key}, one document", "text", ["text"], SINKS[key])
                 for key in ("jsonl", "megatron", "parquet")]  # fmt: skip
        for key, needs, more, out in rows:
            if options.only not in key:
                continue
            make(folder, needs, options.size)
            fed = {"from standard input": "stdin", "from --follow": "follow"}.get(key, "")
            peak, private, seconds = measure(folder, [*more, *out], fed)
            print(f"| {key} | {peak:.1f} | {private:.1f} | {seconds:.1f} |", flush=True)
            for made in folder.glob("out*"):
                made.unlink()
            if needs != "text":
                (folder / needs).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
