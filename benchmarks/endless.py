"""Streams without an end: the largest tail ever held, MB/s and memory, for each kind of input.

    python -m benchmarks.endless --size 1_000_000_000

Each kind is fed to a stream of its own in 64 KiB chunks, in a fresh process. `tail` is the most
that was ever pending after a call, in bytes; `peak` the largest resident set, in MiB; `growth` its
increase after the first 10 MB, in MiB. First, the ids of a prefix of 256 KiB, streamed in chunks of
1 000 bytes, are compared with those of the same bytes encoded as a whole.
"""

from __future__ import annotations

import argparse
import json
import random
import string
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import streamtok

from . import peers, turns

CHUNK = 1 << 16
SIZE = 64 * CHUNK  # bytes of a block that is repeated: longer than any cache of whole pre-tokens
LETTERS = string.ascii_lowercase.encode()
KEYS = string.ascii_letters.encode() + b"0123456789+/"


def _of(alphabet: bytes) -> Callable[[random.Random], bytes]:
    return lambda rng: bytes(rng.choices(alphabet, k=SIZE))


def _han(rng: random.Random) -> bytes:
    return "".join(map(chr, rng.choices(range(0x4E00, 0x9FFF), k=SIZE // 3))).encode()


def _words(rng: random.Random) -> bytes:
    words = [bytes(rng.choices(LETTERS, k=rng.randint(1, 9))) for _ in range(20_000)]
    return b" ".join(rng.choices(words, k=SIZE // 6))


KINDS: dict[str, Callable[[random.Random], bytes]] = {
    "random letters": _of(LETTERS),
    "base64": _of(KEYS),
    "CJK": _han,
    "digits": _of(string.digits.encode()),
    **{unit: lambda _, unit=unit: unit.encode() * (SIZE // 2) for unit in ("a", "=", "ab", "é")},
    "spaces": _of(b" "),
    "newlines": _of(b"\n"),
    "a newline, then spaces": _of(b" "),
    "words": _words,
    "random bytes": lambda rng: rng.randbytes(SIZE),
}


def measure(encoding: str, kind: str, size: int) -> dict[str, float]:
    enc = streamtok.get_encoding(encoding)
    data = KINDS[kind](random.Random(kind))
    head = b"x\n" if kind == "a newline, then spaces" else b""
    settings = {"errors": "surrogateescape", "disallowed_special": ()}
    start = head + data[: 4 * CHUNK]
    stream = enc.stream_encoder(**settings)
    ids = [i for at in range(0, len(start), 1000) for i in stream.encode(start[at : at + 1000])]
    if ids + stream.flush() != enc.encode(start, **settings):
        raise SystemExit(f"{encoding}, {kind}: the stream's ids differ from the whole text's")
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    stream.encode(head)
    fed = tail = level = peak = 0
    begin = time.perf_counter()
    while fed < size:
        for chunk in chunks:
            stream.encode_to_numpy(chunk)
            tail = max(tail, stream.pending)
            fed += len(chunk)
        if fed >= 10_000_000:
            level = level or turns.memory("VmRSS")
            peak = max(peak, turns.memory("VmRSS"))
    speed = fed / (time.perf_counter() - begin) / 1e6
    growth = (peak - level) / 2**20
    return {"tail": tail, "MB/s": speed, "peak": turns.memory() / 2**20, "growth": growth}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--size", type=int, default=10**9)
    parser.add_argument("--encodings", default=",".join(peers.ENCODINGS))
    parser.add_argument("--kinds", default=list(KINDS), choices=KINDS, nargs="+")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.encodings, options.kinds[0], options.size)))
        return

    def rows() -> Iterator[list[str]]:
        for encoding in options.encodings.split(","):
            for kind in options.kinds:
                command = [sys.executable, "-m", "benchmarks.endless", "--one", "--kinds", kind]
                command += ["--encodings", encoding, "--size", str(options.size)]
                row = json.loads(subprocess.run(command, stdout=-1, check=True).stdout)
                tail, *others, growth = row.values()
                shown = [f"{tail}", *(f"{one:.0f}" for one in others), f"{growth:.1f}"]
                yield [encoding, kind, *shown]

    turns.show(["encoding", "input", "tail, bytes", "MB/s", "peak, MiB", "growth, MiB"], rows())


if __name__ == "__main__":
    main()
