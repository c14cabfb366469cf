"""One sample, in a process of its own: `python -m benchmarks.worker TASK`; both are JSON.

A task names a peer, a mode, an encoding and a kind of sample; `sampling.py` makes them. Nothing is
imported here that a peer might import, but for what NumPy brings along: importing and loading are
timed, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import peers

Sample = dict[str, Any]

CALL_SIZES = (11, 100, 1000)  # characters
PROMPT_SIZES = (20, 200, 2000)  # bytes
_CALL_BYTES = 100_000  # of strings of one size
_EQUAL_BYTES = 400_000  # of each text
HARD_BYTES, HARD_SECONDS = 1_000_000, 0.4
_DECODED_BYTES = 200_000  # of each text
STEADY_PARTS, STEADY_FROM, STEADY_BYTES = 12, 4, 750_000


def main() -> int:
    task = json.loads(sys.argv[1])
    if task["kind"] not in ("threads", "command"):
        _pin()
    if task["kind"] == "command":
        from . import two_cores

        print(json.dumps(two_cores.command(task)))
        return 0
    before, begin = _rss(), time.perf_counter()
    kind = peers.by_name(task["peer"])
    kind.import_module()
    imported = time.perf_counter() - begin
    peer = kind(task["encoding"], Path(task["assets"]))
    mode = kind.default() if task["kind"] in ("decode", "threads") else task["mode"]
    is_call = task["kind"] == "calls"
    encode = peer.call_mode(mode) if is_call else peer.mode(mode)
    encode("Hello, world!" if is_call else peer.prepare(mode, "Hello, world!"))
    loaded = {"import_s": imported, "load_s": time.perf_counter() - begin}
    loaded["load_bytes"] = _rss() - before
    print(json.dumps(loaded | _KINDS[task["kind"]](peer, encode, task)))
    return 0


def _pin() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _equal(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """Digest and number of the ids of each text; MB of them in a processor second."""
    from . import corpus

    limit = min(task["limit"] or _EQUAL_BYTES, _EQUAL_BYTES)
    texts = {name: corpus.load(name, limit).decode() for name in corpus.NAMES}
    done = {name: _timed(encode, peer.prepare(task["mode"], text)) for name, text in texts.items()}
    size = sum(len(text.encode()) for text in texts.values())
    return {"texts": done, "mb_s": size / sum(x["cpu_s"] for x in done.values()) / 1e6}


def _text(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """Cold: the first text. Unseen: another text of the same kind. Warm: that one again."""
    from . import corpus
    from .command_line import peak_memory

    parts = corpus.halves(corpus.load(task["corpus"], task["limit"]))
    if task["swap"]:
        parts = parts[::-1]
    first, second = (peer.prepare(task["mode"], part.decode()) for part in parts)
    before = _rss(reset_peak=True)
    cold = _timed(encode, first)
    unseen = _timed(encode, second)
    peak = max(0, peak_memory() - before)
    times = [_timed(encode, second) for _ in range(1 if task["slow"] else 3)]
    phases = {"cold": cold, "unseen": unseen, "warm": sorted(times, key=_seconds)[len(times) // 2]}
    for name, phase in phases.items():
        phase["mb_s"] = len(parts[name != "cold"]) / phase["s"] / 1e6
    return phases | {"peak_bytes": peak}


def _calls(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """µs for a call on each size, over strings not seen before, after a warm-up on others."""
    from . import corpus

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


def _decode(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """MB/s of each text, decoded from a list of ids: the median of five."""
    from . import corpus

    decode, speeds = peer.decoder(task["mode"]), {}
    for name in corpus.NAMES:
        data = corpus.load(name, _DECODED_BYTES)
        ids = peers.as_array(encode(data.decode())).tolist()
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            found = decode(ids)
            times.append(time.perf_counter() - begin)
            if (found.encode() if isinstance(found, str) else bytes(found)) != data:
                raise ValueError(f"another text: {name}")
            del found
        speeds[name] = len(data) / sorted(times)[2] / 1e6
    return {"mb_s": speeds}


def _hard(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """The first call on such a pre-token, and a call on another one of the same kind after it, if
    that does not take long.
    """
    from . import corpus

    found: Sample = {}
    for name, seed in (("first", 20), ("later", 21)):
        text = corpus.hard_pretokens(HARD_BYTES, seed)[task["corpus"]]
        timed = _timed(encode, peer.prepare(task["mode"], text))
        found[name] = timed | {"mb_s": len(text.encode()) / timed["s"] / 1e6}
        if timed["cpu_s"] > HARD_SECONDS:
            break
    return found


def _steady(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """Consecutive parts of one text, the first of which only fill caches. Equal by all ids."""
    import hashlib

    from . import corpus

    digest, size, tokens = hashlib.sha256(), 0, 0
    wall = cpu = 0.0
    data = corpus.load(task["corpus"])  # all of it: a limit would make short streams
    for number, part in enumerate(corpus.consecutive(data, STEADY_PARTS, STEADY_BYTES)):
        given = peer.prepare(task["mode"], part.decode())
        begin_cpu, begin = time.process_time(), time.perf_counter()
        ids = encode(given)
        seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - begin_cpu
        array = peers.as_array(ids)
        digest.update(array.tobytes())
        if number >= STEADY_FROM:
            wall, cpu = wall + seconds, cpu + cpu_seconds
            size, tokens = size + len(part), tokens + len(array)
    found = {"s": wall, "cpu_s": cpu, "bytes": size, "tokens": tokens, "mb_s": size / wall / 1e6}
    return {"steady": found | {"digest": digest.hexdigest()}}


def _threads(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    from . import two_cores

    return two_cores.threads(task)


def _load(peer: peers.Loaded, encode: peers.Encode, task: Sample) -> Sample:
    """What `main` gives for every kind is all."""
    return {}


_KINDS: dict[str, Callable[[peers.Loaded, peers.Encode, Sample], Sample]] = {
    "equal": _equal,
    "text": _text,
    "calls": _calls,
    "decode": _decode,
    "hard": _hard,
    "steady": _steady,
    "threads": _threads,
    "load": _load,
}


def _timed(encode: peers.Encode, given: Any) -> Sample:
    cpu, begin = time.process_time(), time.perf_counter()
    ids = encode(given)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    if isinstance(ids, int):  # it only counts
        return {"s": wall, "cpu_s": cpu, "tokens": ids, "digest": None}
    array = peers.as_array(ids)
    return {"s": wall, "cpu_s": cpu, "tokens": len(array), "digest": _digest(array)}


def _seconds(timed: Sample) -> float:
    return float(timed["s"])


def _digest(array: np.ndarray[Any, np.dtype[np.uint32]]) -> str:
    import hashlib

    return hashlib.sha256(array.tobytes()).hexdigest()


def _rss(reset_peak: bool = False) -> int:
    """Bytes resident now (0 where the system does not say)."""
    with contextlib.suppress(OSError):
        if reset_peak:
            Path("/proc/self/clear_refs").write_text("5")
        pages = Path("/proc/self/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return 0


if __name__ == "__main__":
    sys.exit(main())
