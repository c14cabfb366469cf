"""What single steps take by themselves: `python -m benchmarks.limits`.

Some goals of `compare` are not reached. Each row here is a kernel that does only one step of what
such a goal measures, next to the whole, in turns; `share` is the median of the ratios. Whoever made
all other steps free would still need that share of the time.

- *new pre-tokens*: those that the second half of a text has and the first has not, and that are no
  tokens: looked up, merged and remembered, without the text around them.
- *the same, cold*: in a process that has encoded one letter; *as many new pages*: as the first text
  touches, each written to once.
- *empty lists*: of as many items as there are ids, which Python fills with zeros first.
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
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import regex

import streamtok
from streamtok._core.encode import has_surrogate
from streamtok.parallel.threads import call_in_threads

from . import command_line, corpus
from .corpus import parse_size

_COLD_TEXTS = ("english", "logs")
_CHUNKED_TEXTS = ("english", "json")
_CHUNKS = (1 << 16, 4096, 256)
_COMPANY = [b"a"] * 16  # known pre-tokens beside a few new ones, which then wait for each other
_DOCUMENT = 4000  # characters, in a batch
_BLOCK = 1 << 19  # bytes that the command line reads at a time

# Prints the seconds of one step of a first text, and the new pages that it touched.
_COLD = """
import sys, time, streamtok
from benchmarks import corpus, limits
encoding, name, limit, step, pages = sys.argv[1:]
enc = streamtok.get_encoding(encoding)
enc.encode_ordinary("a")
text = corpus.halves(corpus.load(name, int(limit)))[0].decode()
data, ends = limits.side_by_side(limits.new_pretokens(enc, "", text) if step == "new" else [])
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

Timed = Callable[[], float]  # does it, and gives the seconds


class Row(NamedTuple):
    """A step and the whole that it is a part of: seconds, medians; share: of a turn's ratios."""

    goal: str
    step: str
    seconds: float
    whole: float
    share: float


def in_turns(goal: str, whole: Timed, steps: dict[str, Timed], rounds: int) -> Iterator[Row]:
    median = statistics.median
    for step, kernel in steps.items():
        pairs = [(kernel(), whole()) for _ in range(rounds)]
        times = [median(column) for column in zip(*pairs, strict=True)]
        yield Row(goal, step, *times, median(a / b for a, b in pairs))


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


def side_by_side(pretokens: list[bytes]) -> tuple[Any, Any]:
    """The bytes of all, as uint8, and where each ends, as int64: what `encode_split` takes."""
    sizes = [len(pretoken) for pretoken in pretokens]
    return np.frombuffer(b"".join(pretokens), np.uint8), np.cumsum(sizes, dtype=np.int64)


def after(enc: streamtok.Encoding, first: str, work: Callable[[], Any]) -> Timed:
    """`work`, where `first` is all that the encoding knows besides its tokens."""

    def run() -> float:
        enc._encoder.release()
        enc.encode_ordinary(first)
        return timed(work)

    return run


def faults() -> int:
    """Pages of memory that this process has touched for the first time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def touch(pages: int) -> mmap.mmap:
    """New memory, with a byte written to each page."""
    memory = mmap.mmap(-1, max(1, pages) * mmap.PAGESIZE)
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at] = 1
    return memory


def all_texts(limit: int | None) -> str:
    return b"".join(corpus.load(name, limit) for name in corpus.NAMES).decode()


def unseen(enc: streamtok.Encoding, name: str, limit: int | None, rounds: int) -> Iterator[Row]:
    first, second = (half.decode() for half in corpus.halves(corpus.load(name, limit)))
    new = new_pretokens(enc, first, second)
    data, ends = side_by_side(new)
    again = partial(after, enc, first)
    whole = again(lambda: enc.encode_to_numpy(second))
    merged = again(lambda: enc._encoder.encode_split(data, ends, "array"))
    yield from in_turns(
        f"unseen {name}, to an array", whole, {f"{len(new):,} new pre-tokens": merged}, rounds
    )


def cold(encoding: str, name: str, limit: int | None, rounds: int) -> Iterator[Row]:
    size = len(corpus.load(name)) if limit is None else limit
    touched = 0

    def run(step: str) -> float:
        nonlocal touched
        command = [sys.executable, "-c", _COLD, encoding, name, str(size), step, str(touched)]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=command_line.ROOT
        )
        seconds, pages = done.stdout.split()
        if step == "all":
            touched = int(pages)
        return float(seconds)

    steps = {"new pre-tokens, cold": partial(run, "new"), "new pages": partial(run, "pages")}
    for row in in_turns(f"cold {name}, to an array", partial(run, "all"), steps, rounds):
        yield row._replace(step=f"{touched:,} new pages") if row.step == "new pages" else row


def batch(enc: streamtok.Encoding, limit: int | None, rounds: int) -> Iterator[Row]:
    """Lists for documents, on two threads, all pre-tokens known."""
    text = all_texts(limit)
    documents = [text[at : at + _DOCUMENT] for at in range(0, len(text), _DOCUMENT)]
    counts = [len(ids) for ids in enc.encode_ordinary_batch(documents, num_threads=2)]
    yield from in_turns(
        f"two threads, a batch of {len(text) / 1e6:.0f} MB",
        lambda: timed(lambda: enc.encode_ordinary_batch(documents, num_threads=2)),
        {"empty lists": lambda: timed(lambda: [[None] * count for count in counts])},
        rounds,
    )


def chunked(enc: streamtok.Encoding, name: str, limit: int | None, rounds: int) -> Iterator[Row]:
    data = corpus.load(name, limit)
    ids = enc.encode_to_numpy(data)
    out = np.empty(_CHUNKS[0] + 4096, np.uint32)
    stream = enc.stream_encoder()
    for size in _CHUNKS:
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        some = ids[: -(-len(ids) // len(chunks))]

        def of_each(call: Callable[[bytes], Any], chunks: list[bytes] = chunks) -> Timed:
            return lambda: timed(lambda: [call(chunk) for chunk in chunks])

        at_once = {"the same as one text": lambda: timed(lambda: enc.encode_to_numpy(data))}
        steps = at_once | {
            "arrays that are kept": of_each(lambda chunk, some=some: some.copy()),
            "an empty chunk": of_each(lambda chunk: stream.encode_to_numpy(b"")),
        }
        whole = of_each(stream.encode_to_numpy)
        yield from in_turns(f"chunks of {size} bytes, {name}", whole, steps, rounds)
        steps = at_once | {"an empty chunk": of_each(lambda chunk: stream.encode_into(b"", out))}
        whole = of_each(lambda chunk: stream.encode_into(chunk, out))
        goal = f"chunks of {size} bytes into one array, {name}"
        yield from in_turns(goal, whole, steps, rounds)


def new_in_chunks(
    enc: streamtok.Encoding, first: str, second: str, size: int
) -> list[tuple[Any, Any]]:
    """The new pre-tokens of each chunk of `size` bytes that has some, side by side."""
    new = set(new_pretokens(enc, first, second))
    chunks: dict[int, list[bytes]] = {}
    at = 0
    for found in regex.finditer(enc._pat_str, second):
        pretoken = found[0].encode()
        at += len(pretoken)
        if pretoken in new:
            new.remove(pretoken)
            chunks.setdefault((at - 1) // size, []).append(pretoken)
    return [side_by_side(_COMPANY + pretokens) for pretokens in chunks.values()]


def chunked_unseen(
    enc: streamtok.Encoding, name: str, limit: int | None, rounds: int
) -> Iterator[Row]:
    """Of text not seen before, in chunks that go into one array."""
    first, second = (half.decode() for half in corpus.halves(corpus.load(name, limit)))
    data = second.encode()
    new = new_pretokens(enc, first, second)
    together, company = side_by_side(_COMPANY + new), side_by_side(_COMPANY)
    out = np.empty(_CHUNKS[0] + 4096, np.uint32)
    stream = enc.stream_encoder()

    def split(pieces: list[tuple[Any, Any]]) -> float:
        return timed(lambda: [enc._encoder.encode_split(*piece, "array") for piece in pieces])

    def merged(apart: list[tuple[Any, Any]]) -> float:
        """Beyond as many calls with known pre-tokens only."""
        enc._encoder.release()
        enc.encode_ordinary(first)
        return max(0.0, split(apart) - split([company] * len(apart)))

    for size in _CHUNKS:
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        apart = new_in_chunks(enc, first, second, size)

        def into(chunks: list[bytes]) -> Timed:
            return after(enc, first, lambda: [stream.encode_into(chunk, out) for chunk in chunks])

        steps: dict[str, Timed] = {
            "the same as one text": after(enc, first, lambda: enc.encode_to_numpy(data)),
            f"{len(new):,} new pre-tokens at once": partial(merged, [together]),
            "the same, those of a chunk at a time": partial(merged, apart),
            "an empty chunk": into([b""] * len(chunks)),
        }
        goal = f"unseen {name}, chunks of {size} bytes into one array"
        yield from in_turns(goal, into(chunks), steps, rounds)


def second_thread(enc: streamtok.Encoding, limit: int | None, rounds: int) -> Iterator[Row]:
    text = all_texts(limit)
    middle = len(text) // 2

    def first_call() -> float:
        enc._encoder.release()
        return timed(lambda: enc.encode_ordinary("a"))

    def cold(text: str, threads: int) -> float:
        first_call()
        return timed(lambda: enc.encode_to_numpy(text, num_threads=threads))

    steps = {
        "the first call of a workspace": first_call,
        "half of it on one thread, cold": lambda: statistics.mean(
            (cold(text[:middle], 1), cold(text[middle:], 1))
        ),
    }
    goal = f"two threads, cold, {len(text) / 1e6:.0f} MB"
    yield from in_turns(goal, partial(cold, text, 2), steps, rounds)


def training(enc: streamtok.Encoding, limit: int | None, rounds: int) -> Iterator[Row]:
    text = all_texts(limit)
    middle = len(text) // 2

    def counted(part: str, threads: int) -> Any:
        trainer = streamtok.Trainer(enc._pat_str, num_threads=threads)
        trainer.update(part, final=True)
        return trainer

    def added() -> float:
        one, other = counted(text[:middle], 1), counted(text[middle:], 1)
        return timed(lambda: one.merge(other))

    spans = [(text, 0, middle), (text, middle, len(text))]
    steps = {
        "a look for surrogates, by halves": lambda: timed(
            lambda: call_in_threads(has_surrogate, spans)
        ),
        "adding up": added,
    }
    goal = f"training, two threads, {len(text) / 1e6:.0f} MB"
    yield from in_turns(goal, lambda: timed(lambda: counted(text, 2)), steps, rounds)


def command(encoding: str, size: int, rounds: int) -> Iterator[Row]:
    """Of `streamtok encode FILE -o OUT` against the encode in memory, in chunks of 64 KiB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = command_line.environment(folder)
        small, large, out = folder / "small", folder / "large", folder / "ids.u32"
        small.write_text("a")
        corpus.write_lines(large, size)
        enc = streamtok.get_encoding(encoding)

        def blocks() -> Iterator[bytes]:
            with large.open("rb", buffering=0) as file:
                while block := file.read(_BLOCK):
                    yield block

        share = len(enc.encode_to_numpy(next(blocks()))) * 4 / _BLOCK
        block = os.urandom(_BLOCK)
        n_blocks = max(1, round(size * share / _BLOCK))

        def hashing() -> float:
            digest = hashlib.sha256()
            return timed(lambda: [digest.update(block) for _ in range(n_blocks)])

        def write() -> None:
            with out.open("wb", buffering=0) as file:
                for _ in range(n_blocks):
                    file.write(block)
                os.fsync(file.fileno())

        def writing() -> float:
            out.unlink(missing_ok=True)
            return timed(write)

        def start() -> float:
            return command_line.through_cli(small, out, encoding, [], env).seconds

        start()  # compiles the modules
        steps = {
            "the start of the command": start,
            "reading": lambda: timed(lambda: sum(map(len, blocks()))),
            "SHA-256 of the ids": hashing,
            "writing the ids": writing,
        }
        yield from in_turns(
            f"the command line, {size / 1e6:.0f} MB",
            lambda: command_line.in_memory(large, encoding, 1 << 16, env).seconds,
            steps,
            rounds,
        )


def rows(encoding: str, limit: int | None, size: int, rounds: int) -> Iterator[Row]:
    enc = streamtok.get_encoding(encoding)
    for name in corpus.NAMES:
        yield from unseen(enc, name, limit, rounds)
    for name in _COLD_TEXTS:
        yield from cold(encoding, name, limit, rounds)
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
