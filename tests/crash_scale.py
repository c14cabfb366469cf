"""Jobs in parts whose processes are killed: `python -m tests.crash_scale --kills 100`.

A job runs from the command line with two workers. At random moments the driver, or one of its
workers, or all of them, get SIGKILL; when the driver is dead, the same command begins again. Some
rounds have two drivers at once. In the end every part must be byte for byte that of a job that
nobody disturbed, and its manifest, too.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .crash import make_text

ROOT = Path(__file__).resolve().parent.parent
PART = "20000"
FORMATS = ["u16", "npy", "megatron", "datatrove", "jsonl"]


def start(inputs: list[str], out: Path, format: str) -> subprocess.Popen[bytes]:
    """The driver of a job."""
    args = ["-e", "gpt2", "--errors", "replace", "--disallowed-special", "none", "--lines"]
    return subprocess.Popen(
        [
            sys.executable, "-m", "streamtok", "encode", "-q", *args, *inputs,
            "--format", format, "--part-size", PART, "--workers", "2", "-o", str(out),
        ],
        cwd=ROOT,
    )  # fmt: skip


def children_of(pid: int) -> list[int]:
    """The processes whose parent is this one."""
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def contents(out: Path) -> dict[str, str]:
    """SHA-256 of every file that is not the plan or a record."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.iterdir())
        if path.name.startswith("part-")
    }


def disturbed(inputs: list[str], out: Path, format: str, rng: random.Random, kills: int) -> int:
    """Run the job to its end with at most this many kills; return how many there were."""
    done = 0
    while True:
        drivers = [start(inputs, out, format) for _ in range(rng.choice([1, 1, 2]))]
        while any(driver.poll() is None for driver in drivers):
            time.sleep(rng.uniform(0.05, 0.8))
            alive = [driver for driver in drivers if driver.poll() is None]
            if not alive or done >= kills:
                continue
            driver = rng.choice(alive)
            targets = rng.choice(
                [[driver.pid], children_of(driver.pid)[:1], children_of(driver.pid)]
            )
            for pid in targets:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    done += 1
        codes = [driver.wait() for driver in drivers]
        if 0 in codes:
            return done
        if any(code > 0 for code in codes) and done >= kills:
            raise SystemExit(f"DIFFERENCE: the undisturbed command ended with {codes}")


def main() -> None:
    """Run rounds until there were enough kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    kills = rounds = 0
    begin = time.perf_counter()
    while kills < args.kills:
        format = FORMATS[rounds % len(FORMATS)]
        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder)
            inputs = []
            for number in range(2):
                path = top / f"in{number}"
                path.write_text(make_text(rng, 300_000))
                inputs.append(str(path))
            kills += disturbed(inputs, top / "out", format, rng, args.kills - kills)
            if start(inputs, top / "other", format).wait():
                raise SystemExit("the undisturbed job failed")
            if contents(top / "out") != contents(top / "other"):
                raise SystemExit(f"DIFFERENCE: {format}, seed {seed}, after {kills} kills")
        rounds += 1
        print(f"{kills} kills, {rounds} jobs, {time.perf_counter() - begin:.0f} s", flush=True)
    print(f"{kills} kills in {rounds} jobs, seed {seed}: all files are those of undisturbed jobs")


if __name__ == "__main__":
    main()
