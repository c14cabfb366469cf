"""Samples as `benchmarks.compare --json` writes them, of peers with speeds that are made up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # last: an installed one goes first
from benchmarks import corpus, peers, sampling, tables, worker


def timed(speed):
    return {"s": 1 / speed, "cpu_s": 1 / speed, "tokens": 10, "mb_s": speed, "digest": "d"}


def sample(kind, who, speed):
    """What a worker gives for someone of this speed, in MB/s."""
    names = [f"{n} letters" for n in worker.CALL_SIZES]
    names += [f"prompt of {n}" for n in worker.PROMPT_SIZES] + ["log line"]
    return {
        "text": lambda: {x: timed(speed) for x in tables.PHASES} | {"peak_bytes": 3_000_000},
        "steady": lambda: {"steady": timed(speed) | {"bytes": 10**7}},
        "once": lambda: {"once": timed(speed) | {"bytes": 10**8}},
        "calls": lambda: {"us": {name: 100 / speed for name in names}, "all": timed(speed)},
        "decode": lambda: {"mb_s": dict.fromkeys(corpus.NAMES, speed)},
        "hard": lambda: {"first": timed(speed), "later": timed(2 * speed)},
        "load": lambda: {"import_s": 0.02, "load_s": 1 / speed, "load_bytes": 10**7, "knobs": []},
        "threads": lambda: {"ratio": 1.9, "ceiling": 1.95, "share": 0.97, "mb_s": speed},
        "command": lambda: {"ratio": 1.9, "workers": 1.8, "memory": 0.9, "mb_s": speed},
        "train": lambda: {"seconds": 100 / speed, "peak": 1, "digest": "d", "tokens": 300},
        "endless": lambda: {"growth_bytes": 5_000_000, "bytes": 10**8, "mb_s": speed},
    }[kind]()


SPEEDS = {"streamtok": 200, "tiktoken": 8, "gigatoken": 100, "fastokens": 150, "rs-bpe": 20}


def samples_of_all(encodings=peers.ENCODINGS) -> dict[str, Any]:
    """Samples as `--json` writes them; in the second of the two turns everyone is twice as fast.

    encodings: what is not among those that streamtok bundles is a model.
    """
    found = {}
    for encoding in encodings:
        contenders = [
            (peer, mode)
            for peer in SPEEDS
            for mode in peers.by_name(peer).modes
            if peers.by_name(peer).takes(encoding) or encoding in peers.ENCODINGS
        ]
        run = sampling.Run.__new__(sampling.Run)
        run.encoding, run.settings, run.records = encoding, {}, []
        run.contenders, run.speeds = contenders, {who: SPEEDS[who[0]] for who in contenders}
        run.sample = lambda kind, who, **task: sample(
            kind, who, SPEEDS.get(who[0], 50) * (1 + task["swap"])
        )
        run.judge = "tiktoken" if encoding in peers.ENCODINGS else "streamtok"
        for kind in sampling.kinds_for(sampling.KINDS, encoding, not found):
            run.take(kind, list(corpus.NAMES), 2)
        part = {"contenders": contenders, "notes": ["x `y`: not timed"], "records": run.records}
        found[encoding] = part
    about = {"versions": "streamtok 1, tiktoken 2", "machine": "a machine", "cores": 2}
    about |= {"corpus": "files", "corpora": list(corpus.NAMES), "rounds": 2, "limit": None}
    about |= {"big_bytes": 10**8, "seconds": 60, "encodings": found}
    return json.loads(json.dumps(about))  # as read from a file
