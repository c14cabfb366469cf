"""What single steps take by themselves: `python -m benchmarks.limits`.

Some goals of `compare` are not reached. Each row here is a kernel that does only one step of what
such a goal measures, next to the whole, in turns; `share` is the median of the ratios. Whoever made
all other steps free would still need that share of the time.

- *new pre-tokens*: those that the second half of a text has and the first has not, and that are no
  tokens: looked up, merged and remembered, without the text around them.
- *the UTF-8 of a str*: made, and nothing done with it.
- *an empty list*: of as many items as there are ids, which Python fills with zeros first.
- *the same as one text*: what the chunks have in one call.
- *arrays that are kept*: NumPy's own copies of the ids of a chunk each, as they are given.
- *an empty chunk*: a call that takes in nothing, and gives an empty array.
- *the first call of a workspace*: what a second thread does before its first text.
- *the start of the command*, *reading*, *SHA-256 of the ids*, *writing*: without encoding.
- *UTF-8 and adding up*, for training: what one thread does for both.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import regex

import streamtok
from streamtok._core.encode import utf8_of

from . import cli_cost, corpus
from .big_file import make, parse_size

_CHUNKS = (4096, 256)
_BLOCK = 1 << 19  # bytes that the command line reads at a time


class Row(NamedTuple):
    """A step and the whole that it is a part of: seconds, medians; share: of a turn's ratios."""

    goal: str
    step: str
    seconds: float
    whole: float
    share: float


Timed = Callable[[], float]  # does it, and gives the seconds


def in_turns(goal: str, step: str, kernel: Timed, whole: Timed, rounds: int) -> Row:
    pairs = [(kernel(), whole()) for _ in range(rounds)]
    median = statistics.median
    return Row(
        goal,
        step,
        median(a for a, _ in pairs),
        median(b for _, b in pairs),
        median(a / b for a, b in pairs),
    )


def timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    result = work()
    taken = time.perf_counter() - begin
    del result
    return taken


def new_pretokens(enc: streamtok.Encoding, first: str, second: str) -> list[bytes]:
    """Those of `second` that are neither tokens nor in `first`, each once."""
    known = set(enc.token_byte_values()) | {x.encode() for x in regex.findall(enc._pat_str, first)}
    found = dict.fromkeys(x.encode() for x in regex.findall(enc._pat_str, second))
    return [pretoken for pretoken in found if pretoken not in known]


def unseen(enc: streamtok.Encoding, name: str, limit: int | None, rounds: int) -> Iterator[Row]:
    first, second = (half.decode() for half in corpus.halves(corpus.load(name, limit)))
    new = new_pretokens(enc, first, second)
    data = np.frombuffer(b"".join(new), np.uint8)
    ends = np.cumsum([len(pretoken) for pretoken in new], dtype=np.int64)

    def again(work: Callable[[], Any]) -> Timed:
        def run() -> float:
            enc._encoder.release()
            enc.encode_ordinary(first)
            return timed(work)

        return run

    whole = again(lambda: enc.encode_to_numpy(second))
    goal = f"unseen {name}, to an array"
    merged = again(lambda: enc._encoder.encode_split(data, ends, "array"))
    yield in_turns(goal, f"{len(new):,} new pre-tokens", merged, whole, rounds)
    if not second.isascii():
        yield in_turns(goal, "the UTF-8 of a str", again(lambda: utf8_of(second)), whole, rounds)
    count = enc.count(second)
    listed = again(lambda: enc.encode(second))
    empty = again(lambda: [None] * count)
    yield in_turns(f"unseen {name}, to a list", "an empty list", empty, listed, rounds)


def chunked(enc: streamtok.Encoding, name: str, limit: int | None, rounds: int) -> Iterator[Row]:
    data = corpus.load(name, limit)
    ids = enc.encode_to_numpy(data)
    for size in _CHUNKS:
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        some = ids[: len(ids) // len(chunks)]
        stream = enc.stream_encoder()

        def whole(chunks: list[bytes] = chunks, stream: Any = stream) -> float:
            return timed(lambda: [stream.encode_to_numpy(chunk) for chunk in chunks])

        def kept(chunks: list[bytes] = chunks, some: Any = some) -> float:
            return timed(lambda: [some.copy() for _ in chunks])

        def empty(chunks: list[bytes] = chunks, stream: Any = stream) -> float:
            return timed(lambda: [stream.encode_to_numpy(b"") for _ in chunks])

        def at_once() -> float:
            return timed(lambda: enc.encode_to_numpy(data))

        goal = f"chunks of {size} bytes, {name}"
        yield in_turns(goal, "the same as one text", at_once, whole, rounds)
        yield in_turns(goal, "arrays that are kept", kept, whole, rounds)
        yield in_turns(goal, "an empty chunk", empty, whole, rounds)


def second_thread(enc: streamtok.Encoding, limit: int | None, rounds: int) -> Iterator[Row]:
    text = b"".join(corpus.load(name, limit) for name in corpus.NAMES).decode()

    def first_call() -> float:
        enc._encoder.release()
        return timed(lambda: enc.encode_ordinary("a"))

    def cold() -> float:
        enc._encoder.release()
        enc.encode_ordinary("a")
        return timed(lambda: enc.encode_to_numpy(text, num_threads=2))

    goal = f"two threads, cold, {len(text) / 1e6:.0f} MB"
    yield in_turns(goal, "the first call of a workspace", first_call, cold, rounds)


def training(enc: streamtok.Encoding, limit: int | None, rounds: int) -> Iterator[Row]:
    text = b"".join(corpus.load(name, limit) for name in corpus.NAMES).decode()

    def counted(part: str, threads: int) -> Any:
        trainer = streamtok.Trainer(enc._pat_str, num_threads=threads)
        trainer.update(part, final=True)
        return trainer

    def added() -> float:
        half = len(text) // 2
        one, other = counted(text[:half], 1), counted(text[half:], 1)
        return timed(lambda: one.merge(other))

    def whole() -> float:
        return timed(lambda: counted(text, 2))

    goal = f"training, two threads, {len(text) / 1e6:.0f} MB"
    yield in_turns(goal, "UTF-8", lambda: timed(lambda: utf8_of(text)), whole, rounds)
    yield in_turns(goal, "adding up", added, whole, rounds)


def command(encoding: str, size: int, rounds: int) -> Iterator[Row]:
    """Of `streamtok encode FILE -o OUT` against the encode in memory, in chunks of 64 KiB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = cli_cost.environment(folder) | {
            "PYTHONPATH": str(Path(__file__).resolve().parents[1])
        }
        small, large, out = folder / "small", folder / "large", folder / "ids.u32"
        small.write_text("a")
        make(large, size)
        enc = streamtok.get_encoding(encoding)

        def whole() -> float:
            return cli_cost.in_memory(large, encoding, 1 << 16, env)[0]

        def start() -> float:
            run = [sys.executable, "-m", "streamtok", "encode", "-q", "-e", encoding, str(small)]
            out.unlink(missing_ok=True)
            return timed(lambda: subprocess.run([*run, "-o", str(out)], check=True, env=env))

        def blocks(path: Path) -> Iterator[bytes]:
            with path.open("rb", buffering=0) as file:
                while block := file.read(_BLOCK):
                    yield block

        def reading() -> float:
            return timed(lambda: sum(map(len, blocks(large))))

        share = len(enc.encode_to_numpy(next(blocks(large)))) * 4 / _BLOCK
        block = os.urandom(_BLOCK)
        n_blocks = max(1, round(size * share / _BLOCK))

        def hashing() -> float:
            digest = hashlib.sha256()
            return timed(lambda: [digest.update(block) for _ in range(n_blocks)])

        def writing() -> float:
            out.unlink(missing_ok=True)

            def write() -> None:
                with out.open("wb", buffering=0) as file:
                    for _ in range(n_blocks):
                        file.write(block)
                    os.fsync(file.fileno())

            return timed(write)

        start()  # compiles the modules
        goal = f"the command line, {size / 1e6:.0f} MB"
        steps = {
            "the start of the command": start,
            "reading": reading,
            "SHA-256 of the ids": hashing,
            "writing the ids": writing,
        }
        for step, kernel in steps.items():
            yield in_turns(goal, step, kernel, whole, rounds)


def rows(encoding: str, limit: int | None, size: int, rounds: int) -> Iterator[Row]:
    enc = streamtok.get_encoding(encoding)
    for name in corpus.NAMES:
        yield from unseen(enc, name, limit, rounds)
    yield from chunked(enc, "english", limit, rounds)
    yield from second_thread(enc, limit, rounds)
    yield from training(enc, limit, rounds)
    yield from command(encoding, size, min(rounds, 3))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.limits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--encodings", nargs="*", default=["cl100k_base", "r50k_base"])
    parser.add_argument("--limit", type=parse_size, default="1MB", help="of each text")
    parser.add_argument("--size", type=parse_size, default="200MB", help="for the command line")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for encoding in options.encodings:
        print(f"\n{encoding}:\n\n| goal | step | ms | of ms | share |\n|---|---|--:|--:|--:|")
        for row in rows(encoding, options.limit, options.size, options.rounds):
            times = f"{row.seconds * 1e3:.2f} | {row.whole * 1e3:.2f}"
            print(f"| {row.goal} | {row.step} | {times} | {row.share:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
