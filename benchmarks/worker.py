"""One sample, in a process of its own: `python -m benchmarks.worker TASK`. Both are JSON.

A task names a peer, a mode, an encoding and a kind of sample; `sampling.py` makes them.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from . import corpus, peers, turns

Sample = dict[str, Any]

CALL_SIZES = (11, 100, 1000)  # characters
_CALL_BYTES = 100_000  # of strings of one size
_EQUAL_BYTES = 400_000  # of each text
_THREADS_BYTES, _DOCUMENT = 2_000_000, 4000  # of each text, of each text of a batch


def main() -> int:
    task = json.loads(sys.argv[1])
    print(json.dumps(_sample(task["kind"], task)))
    return 0


def _sample(kind: str, task: Sample) -> Sample:
    if kind != "threads" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    peer, mode = peers.by_name(task["peer"])(task["encoding"], Path(task["assets"])), task["mode"]
    if kind == "threads":
        return _threads(peer.tokenizer, mode, task["limit"])
    encode = peer.call_mode(mode) if kind == "calls" else peer.mode(mode)
    encode("Hello, world!" if kind == "calls" else peer.prepare(mode, "Hello, world!"))
    return _KINDS[kind](peer, encode, task)


def _equal(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """Digest and number of the ids of each text; MB of text per processor second."""
    limit = min(task["limit"] or _EQUAL_BYTES, _EQUAL_BYTES)
    texts = {name: corpus.load(name, limit).decode() for name in corpus.NAMES}
    done = {name: _timed(encode, peer.prepare(task["mode"], text)) for name, text in texts.items()}
    size = sum(len(text.encode()) for text in texts.values())
    return {"texts": done, "mb_s": size / sum(x["cpu_s"] for x in done.values()) / 1e6}


def _text(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """Cold: the first text. Unseen: another text of the same kind. Warm: the latter again."""
    parts = corpus.halves(corpus.load(task["corpus"], task["limit"]))
    if task["swap"]:
        parts = parts[::-1]
    first, second = (peer.prepare(task["mode"], part.decode()) for part in parts)
    cold = _timed(encode, first)
    unseen = _timed(encode, second)
    times = [_timed(encode, second) for _ in range(1 if task["slow"] else 3)]
    phases = {"cold": cold, "unseen": unseen, "warm": sorted(times, key=_seconds)[len(times) // 2]}
    for name, phase in phases.items():
        phase["mb_s"] = len(parts[name != "cold"]) / phase["s"] / 1e6
    return phases


def _calls(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """µs per call for each size, on strings not seen before, after a warm-up on others."""
    english, result = corpus.load("english"), {}
    cpu, begin = time.process_time(), time.perf_counter()
    for size in CALL_SIZES:
        texts = corpus.slices(english, size, _CALL_BYTES // size)
        half = len(texts) // 2
        for text in texts[:half]:
            encode(text)
        start = time.perf_counter()
        for text in texts[half:]:
            encode(text)
        result[f"{size} letters"] = (time.perf_counter() - start) / (len(texts) - half) * 1e6
    spent = {"s": time.perf_counter() - begin, "cpu_s": time.process_time() - cpu}
    return {"us": result, "all": spent}


# Calls for one thread and for two: (encoding, documents, the same as one text, threads).
THREADED: dict[str, Callable[[Any, list[str], str, int], Any]] = {
    "encode_batch": lambda e, docs, text, n: e.encode_batch(docs, num_threads=n),
    "encode_ordinary_batch": lambda e, docs, text, n: e.encode_ordinary_batch(docs, num_threads=n),
    "encode_to_numpy of one text": lambda e, docs, text, n: e.encode_to_numpy(text, num_threads=n),
}


def _threads(encoding: Any, mode: str, limit: int | None) -> Sample:
    """Text seen before. mb_s: with two threads; ratio: one thread's seconds over those of two."""
    size = min(limit or _THREADS_BYTES, _THREADS_BYTES)
    text = b"".join(corpus.load(name, size) for name in corpus.NAMES).decode()
    documents = [text[at : at + _DOCUMENT] for at in range(0, len(text), _DOCUMENT)]
    run = partial(THREADED[mode], encoding, documents, text)
    results = {n: [list(map(int, ids)) for ids in _lists(run(n))] for n in (1, 2)}
    if results[1] != results[2]:
        raise ValueError("two threads give another result than one")
    del results
    calls: turns.Calls = {"one": partial(run, 1), "two": partial(run, 2)}
    times = {x: found[2:] for x, found in turns.in_turns(calls, 9, time.perf_counter).items()}
    speed = len(text.encode()) / min(times["two"]) / 1e6
    return {"mb_s": speed, "ratio": turns.ratio(times["one"], times["two"])}


def _lists(result: Any) -> list[Any]:
    return result if isinstance(result, list) else [result]


_KINDS: dict[str, Callable[[peers.Loaded, peers.Encode, Sample], Sample]] = {
    "equal": _equal,
    "text": _text,
    "calls": _calls,
}


def _timed(encode: peers.Encode, given: Any) -> Sample:
    cpu, begin = time.process_time(), time.perf_counter()
    ids = encode(given)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    if isinstance(ids, int):  # a mode that only counts
        return {"s": wall, "cpu_s": cpu, "tokens": ids, "digest": None}
    array = peers.as_array(ids)
    return {
        "s": wall,
        "cpu_s": cpu,
        "tokens": len(array),
        "digest": hashlib.sha256(array.tobytes()).hexdigest(),
    }


def _seconds(timed: Sample) -> float:
    return float(timed["s"])


if __name__ == "__main__":
    sys.exit(main())
