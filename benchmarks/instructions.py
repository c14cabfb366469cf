"""Counts instructions: `python -m benchmarks.instructions`; `--write` saves the figures.

Time on a shared machine is noisy; the number of instructions per byte hardly is. This command
counts them with `valgrind --tool=callgrind` for fixed texts, encodings and ways into the core, and
compares with `instructions.json`. It prints figures that rose by more than 2 % and then exits with
1; it exits with 2 if nothing can be compared. Valgrind has no AVX-512, so the AVX2 tier is counted,
or, for a core built with `STREAMTOK_SIMD=plain`, the one without SIMD. With `--arm64`, the core is
built for arm64 and runs under qemu, as do the rivals that have wheels for it (see `arm64.py`).

The texts are those that `corpus.py` makes, which are the same for the same Python. Their digests
are in the file, and other texts are not compared. Cache misses and branch misses are not counted,
so a claim of speed also needs ratios of times taken in turns.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import streamtok
from streamtok._core._testing import tier

from . import arm64, corpus, peers, turns

FIGURES = Path(__file__).with_suffix(".json")
RISE = 1.02
_BYTES = 400_000  # of each text; one half is cold, the other unseen
_CHUNK = 1 << 16
_TRAINED = 2048  # tokens
_TRAINING = "training"
# The order of a text's figures in the file. It matters, since caches fill up.
_OWN = ("cold", "unseen", "seen", "64 KiB chunks", "lines", "list", "decode")
DOORS = (*_OWN, *(f"{door}, {rival}" for rival in arm64.RIVALS for door in ("unseen", "seen")))
_AVX2 = {"skylake": "avx2", "avx512": "avx2"}  # the tier that valgrind uses instead
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",  # waiting threads of NumPy's libraries count, too
    # glibc adapts this threshold to freed blocks, and then copies where it could remap.
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072",
}
_CODE = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""


Count = tuple[str, str, str]  # encoding, text, door: the key of a figure


# Used in the process that is counted.


def _feed(encoding: Any, chunks: list[bytes]) -> None:
    stream = encoding.stream_encoder()
    for chunk in chunks:
        stream.encode_to_numpy(chunk)
    stream.encode_to_numpy(b"", final=True)


def _doors(encoding: Any, first: str, second: str) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """(name, bytes, the call to count), in the order of `_OWN`."""
    data = second.encode()
    chunks = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
    lines = data.splitlines(keepends=True)
    yield "cold", len(first.encode()), lambda: encoding.encode_to_numpy(first)
    yield "unseen", len(data), lambda: encoding.encode_to_numpy(second)
    yield "seen", len(data), lambda: encoding.encode_to_numpy(second)
    ids = encoding.encode(second)
    doors: list[Callable[[], Any]] = [
        lambda: _feed(encoding, chunks),
        lambda: _feed(encoding, lines),
        lambda: encoding.encode(second),
        lambda: encoding.decode(ids),
    ]
    for name, run in zip(_OWN[3:], doors, strict=True):
        run()  # fills caches that are made once
        yield name, len(data), run


def _train(texts: list[str]) -> None:
    trainer = streamtok.Trainer("gpt2", num_threads=1)
    for text in texts:
        trainer.update(text)
    trainer.train(_TRAINED)


def _rival_doors(
    name: str, encoding: str, assets: Path, first: str, second: str
) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """As `_doors`, for another library, whose ids must be the same."""
    peer = peers.by_name(name)(encoding, assets)
    encode = peer.mode(peer.peer.default())
    encode(first)
    for door in ("unseen", "seen"):
        yield f"{door}, {name}", len(second.encode()), lambda: encode(second)
    ids = peers.as_array(encode(second)).tolist()
    if ids != streamtok.get_encoding(encoding).encode_ordinary(second):
        raise SystemExit(f"{name} gives other ids for {encoding}")


def count_here(task: dict[str, str]) -> dict[str, int]:
    """Bytes that each door encoded; callgrind or qemu's plugin writes the instructions."""
    lib: Any = ctypes.CDLL(task["library"]) if "library" in task else arm64.Requests()
    first, second = (part.decode() for part in corpus.halves(Path(task["file"]).read_bytes()))
    if task["encoding"] == _TRAINING:
        texts = [first, second]
        _train([first[:10]])
        size = sum(len(text.encode()) for text in texts)
        doors = iter([("cold", size, lambda: _train(texts))])
    elif "rival" in task:
        doors = _rival_doors(task["rival"], task["encoding"], Path(task["assets"]), first, second)
    else:
        doors = _doors(streamtok.get_encoding(task["encoding"]), first, second)
    gc.disable()
    sizes = {}
    for name, size, run in doors:
        sizes[name] = size
        lib.begin()
        run()
        lib.end(name.encode())
    return sizes


# In the main process.


@functools.cache
def text_of(name: str) -> bytes:
    return corpus.shortened(corpus.generated(name), _BYTES)


def prepare(folder: Path, encodings: list[str], is_arm64: bool) -> None:
    """Make what `count` needs. Raises CalledProcessError without valgrind's headers."""
    if is_arm64:
        arm64.prepare()
        peers.write_assets(folder, [name for name in encodings if name != _TRAINING])
    else:
        (folder / "requests.c").write_text(_CODE)
        compiler = [*os.environ.get("CC", "cc").split(), "-O1", "-fPIC", "-shared"]
        subprocess.run([*compiler, "requests.c", "-o", "requests.so"], check=True, cwd=folder)


def count(encoding: str, text: str, folder: Path, is_arm64: bool) -> dict[Count, float]:
    """Instructions per byte, by door; on arm64 for the rivals, too."""
    found = {}
    for rival in ("", *(arm64.RIVALS if is_arm64 and encoding != _TRAINING else ())):
        task = {"encoding": encoding, **({"rival": rival} if rival else {}), "assets": str(folder)}
        with tempfile.TemporaryDirectory() as name:
            out = Path(name, "out")
            if is_arm64:
                sizes = _run(arm64.command(out), arm64.environment(), text, task)
                counted = dict(zip(sizes, map(int, out.read_text().split()), strict=True))
            else:
                command = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}"]
                task["library"] = str(folder / "requests.so")
                sizes = _run([*command, sys.executable], {}, text, task)
                counted = dict(read_dump(file.read_text()) for file in Path(name).glob("out.*"))
        found |= {(encoding, text, door): counted[door] / size for door, size in sizes.items()}
    return found


def _run(
    command: list[str], more: dict[str, str], text: str, task: dict[str, str]
) -> dict[str, int]:
    """Run `count_here` in a process of this command, and return its result."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(text_of(text))  # making it in that process would take minutes
        file.flush()
        task = {"file": file.name, **task}
        done = subprocess.run(
            [*command, "-m", "benchmarks.instructions", "--task", json.dumps(task)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=FIGURES.parents[1] if "library" in task else arm64.FOLDER / "tree",
            env=os.environ | _ENVIRONMENT | more,
        )
    sizes: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return sizes


def read_dump(text: str) -> tuple[str, int]:
    """(the name of the count, instructions) from a file that callgrind wrote."""
    trigger = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
    total = re.search(r"^(?:summary|totals): (\d+)$", text, re.M)
    return trigger[1] if trigger else "", int(total[1]) if total else 0


def digest(name: str) -> str:
    return hashlib.sha256(text_of(name)).hexdigest()[:16]


def to_json(
    data: dict[str, Any], machine: str, counts: dict[Count, float], texts: list[str]
) -> str:
    """The saved `data` with new figures of a machine; a line for each text."""
    figures: dict[str, list[float]] = dict(data.get("figures", {}))
    for (encoding, text), group in itertools.groupby(counts.items(), lambda x: x[0][:2]):
        figures[f"{machine} / {encoding} / {text}"] = [round(value, 1) for _, value in group]
    digests = data.get("texts", {}) | {text: digest(text) for text in texts}
    written = json.dumps({"texts": digests, "figures": figures}, indent=1)
    return re.sub(r"\[[^\[\]]*\]", lambda found: " ".join(found[0].split()), written) + "\n"


def from_json(data: dict[str, Any], machine: str, texts: list[str]) -> dict[Count, float]:
    """The saved figures of texts that are the same here; prints which differ."""
    others = [name for name in texts if data["texts"].get(name, "") != digest(name)]
    if others:
        print(f"not compared, since the texts differ from those in the file: {', '.join(others)}")
    rows = [(key.split(" / "), values) for key, values in data["figures"].items()]
    return {
        (encoding, text, door): value
        for (name, encoding, text), values in rows
        if name == machine and text in texts and text not in others
        for door, value in zip(DOORS, values, strict=False)
    }


def risen(kept: dict[Count, float], counts: dict[Count, float]) -> list[str]:
    """A line for each figure of streamtok that rose by more than 2 %."""
    return [
        f"{' / '.join(key)}: {kept[key]:.1f} before, {value:.1f} now ({value / kept[key] - 1:+.1%})"
        for key, value in counts.items()
        if key in kept and value > RISE * kept[key] and key[2] in _OWN
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.instructions", description=__doc__.partition(":")[0]
    )
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {FIGURES.name}")
    parser.add_argument("--arm64", action="store_true", help="count for arm64, under qemu")
    choices = [*peers.ENCODINGS, _TRAINING]
    parser.add_argument("--encodings", nargs="+", default=choices, choices=choices, metavar="NAME")
    parser.add_argument("--corpora", nargs="+", default=list(corpus.NAMES), choices=corpus.NAMES)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(count_here(json.loads(options.task))))
        return 0
    lacks = arm64.missing() if options.arm64 else None if shutil.which("valgrind") else "valgrind"
    if lacks:
        parser.error(f"{lacks} is missing: install it (Debian: apt-get install)")
    texts = options.corpora
    machine = "neon" if options.arm64 else _AVX2.get(tier(), tier())
    counts: dict[Count, float] = {}
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), options.encodings, options.arm64)
        for encoding, text in itertools.product(options.encodings, texts):
            print(f"{encoding} / {text} …", file=sys.stderr, flush=True)
            counts |= count(encoding, text, Path(name), options.arm64)
    data = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    kept = from_json(data, machine, texts) if data else {}
    rows = [
        (*key, kept.get(key, "–"), f"{x:.1f}", f"{x / kept[key] - 1:+.1%}" if key in kept else "")
        for key, x in counts.items()
    ]
    print(f"Instructions per byte, {machine}\n")
    turns.show(["encoding", "text", "door", "before", "now", "change"], rows)
    if options.write:
        FIGURES.write_text(to_json(data, machine, counts, texts))
        return 0
    if not kept:
        print("nothing to compare with: run with --write first")
        return 2
    lines = risen(kept, counts)
    print("\n".join(["Risen by more than 2 %:", *lines] if lines else ["Nothing rose."]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
