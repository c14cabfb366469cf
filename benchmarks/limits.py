"""What single steps take by themselves: `python -m benchmarks.limits`.

Some goals of `compare` are not reached. Each row here is a kernel that does only one step of what
such a goal measures, next to the whole, in turns; `share` is the median of the ratios. Whoever made
all other steps free would still need that share of the time.

- *new pre-tokens*: those that the second half of a text has and the first has not, and that are no
  tokens: looked up, merged and remembered, without the text around them.
- *the same, cold*: in a process that has encoded one letter; *as many new pages*: as the first text
  touches, each written to once.
- *an empty call*, *texts seen before*: instead of short texts that are new.
- *an empty list* (or *empty lists*): of as many items as there are ids, which Python fills with
  zeros first.
- *the same as one text*: what the chunks have in one call.
- *arrays that are kept*: NumPy's own copies of the ids of a chunk each, as they are given.
- *an empty chunk*: a call that takes in nothing, and gives an empty array.
- *the same, those of a chunk at a time*: the new pre-tokens in as many calls as there are chunks
  that have some, less as many calls on known ones.
- *the first call of a workspace*: what a second thread does before its first text; *half of it on
  one thread, cold*: what each of two threads has to do that share nothing but the text.
- *the start of the command*, *reading*, *SHA-256 of the ids*, *writing*: without encoding.
- *a look for surrogates*, half of the text in each thread, and *adding up*, which one thread does:
  for training.
"""

from __future__ import annotations

import argparse
import hashlib
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import streamtok
from streamtok._core.encode import has_surrogate
from streamtok.parallel.threads import call_in_threads

from . import cli_cost, corpus, worker
from .big_file import make, parse_size
from .chunk_limits import chunked, chunked_unseen
from .steps import Row, Timed, after, in_turns, new_pretokens, side_by_side, timed

_COLD_TEXTS = ("english", "logs")
_CHUNKED_TEXTS = ("english", "json")
_LONG_TEXTS = ("code", "logs")
_CALLS = 1000  # on short texts, in a turn
_DOCUMENT = 4000  # characters, in a batch
_BLOCK = 1 << 19  # bytes that the command line reads at a time

# Prints the seconds of one step of a first text, and the new pages that it touched.
_COLD = """
import sys, time
import numpy as np
import streamtok
from benchmarks import corpus, limits, steps
encoding, name, limit, step, pages = sys.argv[1:]
enc = streamtok.get_encoding(encoding)
enc.encode_ordinary("a")
text = corpus.halves(corpus.load(name, int(limit)))[0].decode()
data, ends = steps.side_by_side(steps.new_pretokens(enc, "", text) if step == "new" else [])
work = {
    "all": lambda: enc.encode_to_numpy(text),
    "new": lambda: enc._encoder.encode_split(data, ends, "array"),
    "pages": lambda: limits.touch(int(pages)),
}[step]
before = limits.faults()
begin = time.perf_counter()
kept = work()
print(time.perf_counter() - begin, limits.faults() - before)
"""


def faults() -> int:
    """Pages of memory that this process has touched for the first time; 0 where nobody counts."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def touch(pages: int) -> mmap.mmap:
    """New memory, with a byte written to each page."""
    memory = mmap.mmap(-1, max(1, pages) * mmap.PAGESIZE)
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at] = 1
    return memory


def unseen(enc: streamtok.Encoding, name: str, limit: int | None, rounds: int) -> Iterator[Row]:
    first, second = (half.decode() for half in corpus.halves(corpus.load(name, limit)))
    new = new_pretokens(enc, first, second)
    data, ends = side_by_side(new)

    def again(work: Callable[[], Any]) -> Timed:
        return after(enc, first, work)

    whole = again(lambda: enc.encode_to_numpy(second))
    goal = f"unseen {name}, to an array"
    merged = again(lambda: enc._encoder.encode_split(data, ends, "array"))
    yield in_turns(goal, f"{len(new):,} new pre-tokens", merged, whole, rounds)
    count = enc.count(second)
    listed = again(lambda: enc.encode(second))
    empty = again(lambda: [None] * count)
    yield in_turns(f"unseen {name}, to a list", "an empty list", empty, listed, rounds)


def long(enc: streamtok.Encoding, name: str, rounds: int) -> Iterator[Row]:
    """Of one text, as `compare` takes it: the parts that it times, after those that it does not."""
    parts = corpus.consecutive(corpus.load(name), worker.STEADY_PARTS, worker.STEADY_BYTES)
    texts = [part.decode() for part in parts]
    first, rest = "".join(texts[: worker.STEADY_FROM]), texts[worker.STEADY_FROM :]
    new = new_pretokens(enc, first, "".join(rest))
    data, ends = side_by_side(new)
    whole = after(enc, first, lambda: [enc.encode_to_numpy(text) for text in rest])
    merged = after(enc, first, lambda: enc._encoder.encode_split(data, ends, "array"))
    yield in_turns(f"long {name}", f"{len(new):,} new pre-tokens", merged, whole, rounds)


def cold(encoding: str, name: str, limit: int | None, rounds: int) -> Iterator[Row]:
    size = len(corpus.load(name)) if limit is None else limit
    root = str(Path(__file__).resolve().parents[1])
    touched = 0

    def run(step: str) -> float:
        nonlocal touched
        command = [sys.executable, "-c", _COLD, encoding, name, str(size), step, str(touched)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
        seconds, pages = done.stdout.split()
        if step == "all":
            touched = int(pages)
        return float(seconds)

    goal = f"cold {name}, to an array"
    whole = partial(run, "all")
    yield in_turns(goal, "new pre-tokens, cold", partial(run, "new"), whole, rounds)
    yield in_turns(goal, f"{touched:,} new pages", partial(run, "pages"), whole, rounds)


def short_calls(enc: streamtok.Encoding, rounds: int) -> Iterator[Row]:
    """Of calls on 11 letters that were not seen before."""
    texts = iter(corpus.slices(corpus.load("english"), 11, (2 * rounds + 1) * _CALLS))
    seen = [enc.encode(text) and text for text in islice(texts, _CALLS)]

    def calls(texts: list[str]) -> float:
        begin = time.perf_counter()
        for text in texts:
            enc.encode(text)
        return time.perf_counter() - begin

    def whole() -> float:
        seen[:] = list(islice(texts, _CALLS))
        return calls(seen)

    goal = f"{_CALLS:,} calls on 11 letters"
    yield in_turns(goal, "an empty call", lambda: calls([""] * len(seen)), whole, rounds)
    yield in_turns(goal, "texts seen before", lambda: calls(seen), whole, rounds)


def batch(enc: streamtok.Encoding, limit: int | None, rounds: int) -> Iterator[Row]:
    """Lists for documents, on two threads, all pre-tokens known."""
    text = b"".join(corpus.load(name, limit) for name in corpus.NAMES).decode()
    documents = [text[at : at + _DOCUMENT] for at in range(0, len(text), _DOCUMENT)]
    counts = [len(ids) for ids in enc.encode_ordinary_batch(documents, num_threads=2)]
    yield in_turns(
        f"two threads, a batch of {len(text) / 1e6:.0f} MB",
        "empty lists",
        lambda: timed(lambda: [[None] * count for count in counts]),
        lambda: timed(lambda: enc.encode_ordinary_batch(documents, num_threads=2)),
        rounds,
    )


def second_thread(enc: streamtok.Encoding, limit: int | None, rounds: int) -> Iterator[Row]:
    text = b"".join(corpus.load(name, limit) for name in corpus.NAMES).decode()

    def first_call() -> float:
        enc._encoder.release()
        return timed(lambda: enc.encode_ordinary("a"))

    def cold(text: str, threads: int) -> float:
        enc._encoder.release()
        enc.encode_ordinary("a")
        return timed(lambda: enc.encode_to_numpy(text, num_threads=threads))

    def half() -> float:
        return statistics.mean((cold(text[:middle], 1), cold(text[middle:], 1)))

    whole = partial(cold, text, 2)
    middle = len(text) // 2
    goal = f"two threads, cold, {len(text) / 1e6:.0f} MB"
    yield in_turns(goal, "the first call of a workspace", first_call, whole, rounds)
    yield in_turns(goal, "half of it on one thread, cold", half, whole, rounds)


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

    def looked_through() -> float:
        middle = len(text) // 2
        spans = [(text, 0, middle), (text, middle, len(text))]
        return timed(lambda: call_in_threads(has_surrogate, spans))

    goal = f"training, two threads, {len(text) / 1e6:.0f} MB"
    yield in_turns(goal, "a look for surrogates, by halves", looked_through, whole, rounds)
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
    for name in _LONG_TEXTS:
        yield from long(enc, name, rounds)
    for name in _COLD_TEXTS:
        yield from cold(encoding, name, limit, rounds)
    yield from short_calls(enc, rounds)
    yield from batch(enc, limit, rounds)
    yield from chunked(enc, "english", limit, rounds)
    for name in _CHUNKED_TEXTS:
        yield from chunked_unseen(enc, name, limit, rounds)
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
