"""One sample, in a process of its own: `python -m benchmarks.worker TASK`; both are JSON.

A task names a peer, a mode, an encoding and a kind of sample; `sampling.py` makes them.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import corpus, peers, two_cores

Sample = dict[str, Any]

CALL_SIZES = (11, 100, 1000)  # characters
PROMPT_SIZES = (20, 200, 2000)  # bytes
_CALL_BYTES = 100_000  # of strings of one size
_EQUAL_BYTES = 400_000  # of each text


def main() -> int:
    task = json.loads(sys.argv[1])
    if task["kind"] == "threads":
        print(json.dumps(two_cores.threads(task)))
        return 0
    _pin()
    peer, mode = peers.by_name(task["peer"])(task["encoding"], Path(task["assets"])), task["mode"]
    is_call = task["kind"] == "calls"
    encode = peer.call_mode(mode) if is_call else peer.mode(mode)
    encode("Hello, world!" if is_call else peer.prepare(mode, "Hello, world!"))
    print(json.dumps(_KINDS[task["kind"]](peer, encode, task)))
    return 0


def _pin() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _equal(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """Digest and number of the ids of each text; MB of them in a processor second."""
    limit = min(task["limit"] or _EQUAL_BYTES, _EQUAL_BYTES)
    texts = {name: corpus.load(name, limit).decode() for name in corpus.NAMES}
    done = {name: _timed(encode, peer.prepare(task["mode"], text)) for name, text in texts.items()}
    size = sum(len(text.encode()) for text in texts.values())
    return {"texts": done, "mb_s": size / sum(x["cpu_s"] for x in done.values()) / 1e6}


def _text(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """Cold: the first text. Unseen: another text of the same kind. Warm: that one again."""
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
    """µs for a call on each size, over strings not seen before, after a warm-up on others."""
    english, result = corpus.load("english"), {}
    strings = {f"{n} letters": corpus.slices(english, n, _CALL_BYTES // n) for n in CALL_SIZES}
    for size in PROMPT_SIZES:
        count = 200 if task["slow"] else max(200, _CALL_BYTES // size)
        strings[f"prompt of {size}"] = corpus.prompts(size, count, task["limit"])
    strings["log line"] = corpus.log_lines(_CALL_BYTES // 100)
    cpu, begin = time.process_time(), time.perf_counter()
    for name, texts in strings.items():
        half = len(texts) // 2
        for text in texts[:half]:
            encode(text)
        start = time.perf_counter()
        for text in texts[half:]:
            encode(text)
        result[name] = (time.perf_counter() - start) / (len(texts) - half) * 1e6
    spent = {"s": time.perf_counter() - begin, "cpu_s": time.process_time() - cpu}
    return {"us": result, "all": spent}


_KINDS: dict[str, Callable[[peers.Loaded, peers.Encode, Sample], Sample]] = {
    "equal": _equal,
    "text": _text,
    "calls": _calls,
}


def _timed(encode: peers.Encode, given: Any) -> Sample:
    cpu, begin = time.process_time(), time.perf_counter()
    ids = encode(given)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    if isinstance(ids, int):  # it only counts
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
