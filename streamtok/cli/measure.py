"""Measures the cost and the errors of streaming a text, for `streamtok bench FILE`.

Compares two ways to encode a file that arrives in chunks. *Naive* decodes each chunk with
errors="replace" and encodes it by itself, as is often done. *Incremental* uses
`Encoding.stream_encoder`. An error is a difference from the ids of the whole file. Errors are
counted before anything is timed.

Other libraries, memory, repeated text, single calls and threads are measured in `benchmarks/`.
"""

from __future__ import annotations

import operator
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answers.views.lanes import are_right, encode_naively
from ..encoding import Encoding
from .paint import columns

DEFAULT_CHUNK_SIZES = (256, 4096, 65536)
_SECONDS = 15.0  # seconds after which no round of timing begins

Encode = Callable[[bytes], "list[int]"]


@dataclass(frozen=True)
class Row:
    """The measurements of one way to encode the data."""

    way: str  # offline, incremental or naive
    chunk_size: int  # bytes; the size of the data for the offline way
    chunks: int  # the final flush is timed, but not counted here
    us_per_chunk: float
    mb_per_s: float
    tokens: int
    wrong_tokens: int  # ids that offline encoding does not have at their offset
    cuts: int  # between two chunks
    cuts_inside_tokens: int
    broken_chunks: int  # chunks whose ids do not decode to their bytes


@dataclass(frozen=True)
class _Way:
    name: str
    chunk_size: int
    start: Callable[[], Encode]  # makes an encoder with empty caches

    def chunks(self, data: bytes) -> list[bytes]:
        size = self.chunk_size
        chunks = [data[start : start + size] for start in range(0, len(data), size)]
        return [*chunks, b""] if self.name == "incremental" else chunks  # b"" flushes


def measure(
    data: bytes,
    encoding: Encoding,
    chunk_sizes: Sequence[int] = DEFAULT_CHUNK_SIZES,
    *,
    rounds: int = 5,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Row]:
    """Measure each way on `data`, which must be UTF-8.

    Each timed pass begins with empty caches. The ways run in interleaved rounds; times are medians.
    progress: called with (passes done, total passes). Raises UnicodeDecodeError, and ValueError for
    empty data, for bad chunk sizes or, before any timing, for ids that are not as expected.
    """
    data.decode()
    if not data or any(size < 1 for size in chunk_sizes):
        raise ValueError("data must not be empty, and chunk sizes must be positive")
    ways = _ways(data, encoding, chunk_sizes)
    passes = (1 + rounds) * len(ways)
    errors = []
    for wrong in _errors(data, encoding, ways):
        errors.append(wrong)
        progress(len(errors), passes)
    seconds: list[list[float]] = [[] for _ in ways]
    begin = time.monotonic()
    for turn in range(rounds * len(ways)):
        round_number, i = divmod(turn, len(ways))
        if round_number and not i and time.monotonic() - begin > _SECONDS:
            break
        i = (i + round_number) % len(ways)
        seconds[i].append(_time(ways[i], data))
        progress(len(errors) + turn + 1, passes)
    rows = []
    for way, samples, wrong in zip(ways, seconds, errors, strict=True):
        chunks, median = -(-len(data) // way.chunk_size), statistics.median(samples)
        speed = median * 1e6 / chunks, len(data) / median / 1e6
        rows.append(Row(way.name, way.chunk_size, chunks, *speed, **wrong))
    return rows


def _ways(data: bytes, encoding: Encoding, chunk_sizes: Sequence[int]) -> list[_Way]:
    def fresh() -> Encoding:
        twin = Encoding(mergeable_ranks=encoding.definition.vocabulary, **spec)
        twin.encode("a")
        return twin

    def incremental() -> Encode:
        stream = fresh().stream_encoder(disallowed_special=(), max_pending=len(data))
        return lambda chunk: stream.encode(chunk, final=not chunk)

    def naive() -> Encode:
        other = fresh()
        return lambda chunk: other.encode(chunk.decode("utf-8", "replace"), disallowed_special=())

    spec: dict[str, Any] = {"name": encoding.name, "pat_str": encoding.definition.pat_str}
    spec["special_tokens"] = encoding.definition.specials.special
    ways = [_Way("offline", len(data), naive)]
    for size in chunk_sizes:
        ways += [_Way("incremental", size, incremental), _Way("naive", size, naive)]
    return ways


def _errors(data: bytes, encoding: Encoding, ways: Sequence[_Way]) -> Iterator[dict[str, int]]:
    """Yield the errors of each way. Raises ValueError if ids are not as expected."""
    whole, spans = encoding.encode_with_offsets(data, "byte", disallowed_special=())
    starts = spans[:, 0]
    for way in ways:
        chunks = way.chunks(data)
        results = list(map(way.start(), chunks))
        ids = np.concatenate([np.array(one, np.int64) for one in results])
        wrong = broken = 0
        expected = whole
        if way.name == "naive":
            pairs = np.concatenate(
                [
                    encode_naively(encoding, chunk, number * way.chunk_size)
                    for number, chunk in enumerate(chunks)
                ]
            )
            expected = pairs[:, 0]
            wrong = int(np.count_nonzero(~are_right(pairs, np.stack([whole, starts], axis=1))))
            broken = sum(map(operator.ne, map(encoding.decode_bytes, results), chunks))
        if not np.array_equal(ids, expected):
            raise ValueError(f"{way.name}, {way.chunk_size} bytes: ids differ from streamtok's")
        cuts = np.arange(way.chunk_size, len(data), way.chunk_size)
        yield {
            "tokens": len(ids),
            "wrong_tokens": wrong,
            "cuts": len(cuts),
            "cuts_inside_tokens": int(np.count_nonzero(~np.isin(cuts, starts))),
            "broken_chunks": broken,
        }


def _time(way: _Way, data: bytes) -> float:
    encode, chunks = way.start(), way.chunks(data)
    begin = time.perf_counter()
    for chunk in chunks:
        encode(chunk)
    return time.perf_counter() - begin


_HEAD = ["chunk", "way", "µs/chunk", "MB/s", "tokens", "wrong ids", "cut tokens", "broken"]


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of a table of these rows."""
    cells = [_HEAD]
    for row in rows:
        cells.append(
            [
                "whole" if row.way == "offline" else f"{row.chunk_size:,}",
                row.way,
                f"{row.us_per_chunk:,.1f}",
                f"{row.mb_per_s:.1f}",
                f"{row.tokens:,}",
                f"{row.wrong_tokens / row.tokens:.2%}",
                f"{row.cuts_inside_tokens / row.cuts:.1%}" if row.cuts else "",
                f"{row.broken_chunks / row.chunks:.1%}",
            ]
        )
    return columns(cells, [True, False, *[True] * (len(_HEAD) - 2)])
