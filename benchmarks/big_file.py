"""A big file through the command line: `python -m benchmarks.big_file --size 1GB`.

Makes a file from the lines of all texts, shuffled anew in each pass over them, in a temporary
folder; runs `streamtok encode`; and reports MB/s and the peak memory that the kernel counted for
that process. Then the ids are decoded back (the digest must be the file's), and those of the first
20 MB are compared with tiktoken's, whose speed there on one thread gives the ratio.

Not here: text that no cache has seen. A line comes back after some 15 MB: see compare.py.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SAMPLE_BYTES = 20_000_000
_BLOCK = 1 << 20
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}


def parse_size(text: str) -> int:
    """Bytes: a number with KB, MB or GB (powers of ten) behind it, or none."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]B)?", text.strip().upper())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 1GB")
    return int(float(match[1]) * _UNITS.get(match[2], 1))


def make(path: Path, size: int) -> None:
    """Write the file; it ends after a line, at or a little over `size` bytes."""
    from . import corpus

    rng = random.Random(1)
    lines = [line for name in corpus.NAMES for line in corpus.load(name).splitlines(keepends=True)]
    lines = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
    written = 0
    with path.open("wb") as file:
        while written < size:
            rng.shuffle(lines)
            for line in lines:
                written += file.write(line)
                if written >= size:
                    break


def encode(path: Path, out: Path, encoding: str) -> tuple[float, int]:
    """Run the command line: seconds, and bytes of its peak memory.

    The kernel's figure for a child begins with the parent's size at the fork: this process must
    still be small.
    """
    command = [sys.executable, "-m", "streamtok", "encode", str(path), "-o", str(out), "-q"]
    begin = time.perf_counter()
    process = subprocess.Popen([*command, "--format", "u32", "--encoding", encoding])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"streamtok encode: exit code {process.returncode}")
    return seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def is_round_trip(path: Path, out: Path, encoding: str) -> bool:
    """Whether the ids in `out` decode to the bytes in `path`."""
    import numpy as np

    import streamtok

    decode = streamtok.get_encoding(encoding).decode_bytes
    decoded, original = hashlib.sha256(), hashlib.sha256()
    with out.open("rb") as file:
        while block := file.read(_BLOCK):
            decoded.update(decode(np.frombuffer(block, "<u4").astype(np.uint32)))
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            original.update(block)
    return decoded.digest() == original.digest()


def compare_tiktoken(path: Path, out: Path, encoding: str) -> tuple[float, int]:
    """tiktoken's MB/s on the beginning of the file, and how many ids were compared.

    SystemExit if one differs. The last ids of the beginning depend on what follows: not compared.
    """
    import numpy as np

    from . import peers
    from .assets import write_assets

    with tempfile.TemporaryDirectory() as folder:
        write_assets(Path(folder), [encoding])
        tiktoken = peers.Tiktoken(encoding, Path(folder)).mode("encode_to_numpy")
    with path.open("rb") as file:
        data = file.read(_SAMPLE_BYTES)
    text = data[: data.rfind(b"\n") + 1].decode()
    tiktoken("a")
    begin = time.perf_counter()
    ids = tiktoken(text)
    seconds = time.perf_counter() - begin
    certain = ids[: max(0, len(ids) - 64)]
    with out.open("rb") as file:
        own = np.frombuffer(file.read(4 * len(certain)), "<u4")
    if not np.array_equal(own, certain):
        raise SystemExit("the ids differ from tiktoken's")
    return len(text.encode()) / seconds / 1e6, len(certain)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.big_file", description=__doc__)
    parser.add_argument("--size", type=parse_size, default="1GB")
    parser.add_argument("--encoding", default="cl100k_base")
    parser.add_argument("--make", type=Path, help="only make the file, under this name")
    options = parser.parse_args()
    if options.make:
        make(options.make, options.size)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "text", Path(folder) / "ids.u32"
        again = [sys.executable, "-m", "benchmarks.big_file", "--size", str(options.size)]
        subprocess.run([*again, "--make", str(path)], check=True)  # see encode() for why
        seconds, peak = encode(path, out, options.encoding)
        size, ids = path.stat().st_size, out.stat().st_size // 4
        speed = size / seconds / 1e6
        print(f"{size:,} bytes, {ids:,} ids of {options.encoding}")
        print(f"streamtok encode: {seconds:.1f} s with start, {speed:.1f} MB/s, ", end="")
        print(f"peak memory {peak / 1e6:.1f} MB", flush=True)
        if not is_round_trip(path, out, options.encoding):
            raise SystemExit("the ids do not decode to the file")
        print("all ids decode to the same bytes (SHA-256)", flush=True)
        try:
            theirs, compared = compare_tiktoken(path, out, options.encoding)
        except ImportError:
            print("tiktoken is not installed: not compared")
            return 0
        print(f"the first {compared:,} ids are tiktoken's, at {theirs:.1f} MB/s on one thread")
        print(f"streamtok ÷ tiktoken: {speed / theirs:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
