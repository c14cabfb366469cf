"""Samples that need two cores: threads against the machine's ceiling.

The ceiling is what two processes that share nothing show, each with half of the documents: the
seconds of either alone, added, over the seconds of both at once. All calls come after calls on the
same text, in processes that stay. None of them is forked: memory that is copied when it is written
to would be a part of the time.

`python -m benchmarks.two_cores TASK` is one of these processes: for each number of threads that
comes in, a line with begin, end and digest goes out.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import corpus, peers, processes

Sample = dict[str, Any]

_BYTES, _TURNS = 2_000_000, 7  # of each text; timings of each kind
_WARM_UPS = 2  # turns that do not count: each shares the text among threads in another way
_DOCUMENT = 4000  # bytes, of a batch


# What is done by one thread and by two: (encoding, documents, all of them in one text, threads).
THREADED: dict[str, Callable[[Any, list[str], str, int], Any]] = {
    "encode_batch": lambda e, docs, text, n: e.encode_batch(docs, num_threads=n),
    "encode_ordinary_batch": lambda e, docs, text, n: e.encode_ordinary_batch(docs, num_threads=n),
    "encode_to_numpy of one text": lambda e, docs, text, n: e.encode_to_numpy(text, num_threads=n),
}


def cores() -> int:
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def threads(task: Sample) -> Sample:
    """One thread, two threads, and two processes: medians over the turns.

    ratio: one thread's seconds over those of two. ceiling: the same for two processes on different
    texts. share: of the ceiling that two threads reach, within a turn. ValueError if the results
    differ.
    """
    if cores() < 2:
        raise ValueError("one core here")
    turns = []
    children = _children(task)
    try:
        for turn in range(_TURNS + _WARM_UPS):
            found: dict[str, _Span] = {}
            for name, (who, n) in _STEPS.items():
                found[name] = _together([children[one] for one in who], n)
            if found["one"].digests != found["two"].digests:
                raise ValueError("two threads give another result than one")
            if turn >= _WARM_UPS:
                turns.append({name: span.seconds for name, span in found.items()})
    finally:
        _end(children)
    median = statistics.median
    ratios = [x["one"] / x["two"] for x in turns]
    ceilings = [(x["left"] + x["right"]) / x["both"] for x in turns]
    size = found["one"].size
    return {
        "ratio": median(ratios),
        "ceiling": median(ceilings),
        "share": median(a / b for a, b in zip(ratios, ceilings, strict=True)),
        "mb_s": size / min(x["two"] for x in turns) / 1e6,
    }


# What is timed in a turn: by which processes, and with how many threads each.
_PARTS = {"all": slice(None), "even": slice(None, None, 2), "odd": slice(1, None, 2)}
_STEPS: dict[str, tuple[tuple[str, ...], int]] = {
    "one": (("all",), 1),
    "two": (("all",), 2),
    "left": (("even",), 1),
    "right": (("odd",), 1),
    "both": (("even", "odd"), 1),
}


class _Span(NamedTuple):
    seconds: float  # from the first's begin to the last's end
    digests: list[str]
    size: int  # bytes of text


def _children(task: Sample) -> dict[str, subprocess.Popen[str]]:
    """New processes, each of which has loaded its part of the text."""
    started: dict[str, subprocess.Popen[str]] = {}
    for part in _PARTS:
        command = [sys.executable, "-m", "benchmarks.two_cores", json.dumps(task | {"part": part})]
        started[part] = subprocess.Popen(
            command, cwd=processes.ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    try:
        for child in started.values():
            _line_of(child)
    except BaseException:
        _end(started)
        raise
    return started


def _end(children: dict[str, subprocess.Popen[str]]) -> None:
    for child in children.values():
        child.kill()
        child.communicate()


def _line_of(child: subprocess.Popen[str]) -> Any:
    line = child.stdout.readline() if child.stdout else ""
    if not line:
        raise ValueError(f"a process ended with {child.wait()}")
    return json.loads(line)


def _together(children: list[subprocess.Popen[str]], n: int) -> _Span:
    for child in children:
        assert child.stdin
        child.stdin.write(f"{n}\n")
        child.stdin.flush()
    found = [_line_of(child) for child in children]
    begin, end = min(one["begin"] for one in found), max(one["end"] for one in found)
    digests = [one["digest"] for one in found]
    return _Span(end - begin, digests, sum(one["size"] for one in found))


def main() -> int:
    task = json.loads(sys.argv[1])
    peer = peers.by_name(task["peer"])(task["encoding"], Path(task["assets"]))
    size = min(task["limit"] or _BYTES, _BYTES)
    text = b"".join(corpus.load(name, size) for name in corpus.NAMES).decode()
    documents = [text[start : start + _DOCUMENT] for start in range(0, len(text), _DOCUMENT)]
    part = documents[_PARTS[task["part"]]]
    text = "".join(part)
    given = {"size": len(text.encode())}
    peer.tokenizer.encode("Hello, world!")
    print("0", flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        result = THREADED[task["mode"]](peer.tokenizer, part, text, int(line))
        end = time.perf_counter()
        digest = hashlib.sha256()
        for block in _bytes_of(result):
            digest.update(block)
        del result
        times = {"begin": begin, "end": end, "digest": digest.hexdigest()}
        print(json.dumps(times | given), flush=True)
    return 0


def _bytes_of(result: Any) -> Iterator[bytes]:
    if isinstance(result, np.ndarray):
        yield result.tobytes()
    else:
        for ids in result:
            yield np.asarray([len(ids), *ids], np.uint32).tobytes()


if __name__ == "__main__":
    sys.exit(main())
