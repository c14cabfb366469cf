"""A step by itself, next to the whole that it is a part of, in turns: for `limits.py`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import regex

import streamtok


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
