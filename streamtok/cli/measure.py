"""Measures the cost and the errors of streaming on a file: `streamtok bench FILE`.

Compares two ways to encode a file that comes in chunks. *Naive* decodes each chunk with
errors="replace" and encodes it by itself, as is often done. *Incremental* uses
`Encoding.stream_encoder`. The first table has the columns of a Go benchmark (an op is one chunk),
the second the errors compared with the whole file encoded at once. Ids are compared before timing.

Other libraries, repeated text, single calls and threads are measured in `benchmarks/`.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answers.views.naive import are_right, encode_naively
from ..encoding import Encoding
from ..errors import StreamtokError, VocabularyError
from ..registry import get_encoding, list_encoding_names
from .paint import columns

DEFAULT_CHUNK_SIZES = (256, 4096, 65536)
_MAX_BYTES = 8 << 20  # of the file; more do not improve the figures
_LITTLE = 1 << 18  # bytes; less takes only microseconds
_SECONDS = 15.0  # after these, no new round of timing begins
_TRACED_OPS = 64  # ops of each way to trace, because tracemalloc is slow

Encode = Callable[[bytes], "list[int]"]


@dataclass(frozen=True)
class Row:
    """The measurements of one way to encode the data."""

    way: str  # offline, incremental or naive; after "tiktoken " for tiktoken
    chunk_size: int  # bytes; the size of the data for the offline ways
    ops: int  # chunks with data; the flush is timed, but not counted
    ns_per_op: float
    mb_per_s: float
    bytes_per_op: float  # rise of traced memory in an op whose result is kept
    allocs_per_op: float  # new blocks when an op has returned
    tokens: int
    extra_tokens: int  # compared with offline
    wrong_tokens: int  # ids that offline encoding does not have at this offset
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
        return [*chunks, b""] if self.name == "incremental" else chunks  # b"" is the flush

    def ops(self, data: bytes) -> int:
        """The number of chunks with data. The flush is timed as a part of them."""
        return -(-len(data) // self.chunk_size)


def measure(
    data: bytes,
    encoding: Encoding,
    chunk_sizes: Sequence[int] = DEFAULT_CHUNK_SIZES,
    *,
    rounds: int = 5,
) -> list[Row]:
    """Measure each way on `data`, which must be UTF-8.

    Each timed pass begins with empty caches. The ways run in interleaved rounds, and the median
    counts. Raises UnicodeDecodeError, and ValueError before timing if ids differ but must not.
    """
    data.decode()
    if not data or any(size < 1 for size in chunk_sizes):
        raise ValueError("data must not be empty, and chunk sizes must be positive")
    ways = _ways(data, encoding, chunk_sizes)
    errors = _errors(data, encoding, ways)
    seconds: list[list[float]] = [[] for _ in ways]
    begin = time.monotonic()
    for round_number in range(rounds):
        if round_number and time.monotonic() - begin > _SECONDS:
            break
        for i in range(len(ways)):
            i = (i + round_number) % len(ways)
            seconds[i].append(_time(ways[i], data))
    rows = []
    for way, samples, wrong in zip(ways, seconds, errors, strict=True):
        ops, median = way.ops(data), statistics.median(samples)
        speed = median * 1e9 / ops, len(data) / median / 1e6
        rows.append(Row(way.name, way.chunk_size, ops, *speed, *_trace(way, data), **wrong))
    return rows


def _ways(data: bytes, encoding: Encoding, chunk_sizes: Sequence[int]) -> list[_Way]:
    def fresh() -> Encoding:
        twin = Encoding(mergeable_ranks=encoding.definition.vocabulary, **spec)
        twin.encode("a")
        return twin

    def incremental() -> Encode:
        stream = fresh().stream_encoder(disallowed_special=(), max_pending=len(data))
        return lambda chunk: stream.encode(chunk, final=not chunk)

    def naive(make: Callable[[], Any]) -> Encode:
        other = make()
        return lambda chunk: other.encode(chunk.decode("utf-8", "replace"), disallowed_special=())

    spec: dict[str, Any] = {"name": encoding.name, "pat_str": encoding.definition.pat_str}
    spec["special_tokens"] = encoding.definition.specials.special
    makers: dict[str, Callable[[], Any]] = {"": fresh}
    with contextlib.suppress(ImportError):
        import tiktoken  # for comparison; not a dependency

        other = tiktoken.Encoding(mergeable_ranks=encoding.definition.vocabulary.to_ranks(), **spec)
        makers["tiktoken "] = lambda: other
    starts = {who: functools.partial(naive, make) for who, make in makers.items()}
    ways = [_Way(f"{who}offline", len(data), start) for who, start in starts.items()]
    for size in chunk_sizes:
        ways.append(_Way("incremental", size, incremental))
        ways += [_Way(f"{who}naive", size, start) for who, start in starts.items()]
    return ways


def _errors(data: bytes, encoding: Encoding, ways: Sequence[_Way]) -> list[dict[str, int]]:
    """What each way gets wrong. Raises ValueError if ids differ but must not."""
    whole, spans = encoding.encode_with_offsets(data, "byte", disallowed_special=())
    starts = spans[:, 0]
    found = []
    for way in ways:
        chunks = way.chunks(data)
        results = list(map(way.start(), chunks))
        ids = np.concatenate([np.array(one, np.int64) for one in results])
        wrong = broken = 0
        expected = whole
        if way.name.endswith("naive"):
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
        found.append(
            {
                "tokens": len(ids),
                "extra_tokens": len(ids) - len(whole),
                "wrong_tokens": wrong,
                "cuts": len(cuts),
                "cuts_inside_tokens": int(np.count_nonzero(~np.isin(cuts, starts))),
                "broken_chunks": broken,
            }
        )
    return found


def _time(way: _Way, data: bytes) -> float:
    encode, chunks = way.start(), way.chunks(data)
    begin = time.perf_counter()
    for chunk in chunks:
        encode(chunk)
    return time.perf_counter() - begin


def _trace(way: _Way, data: bytes) -> tuple[float, float]:
    """Bytes and allocations per op that tracemalloc sees, in the middle of the data."""
    encode, chunks = way.start(), way.chunks(data)
    begin = max(0, len(chunks) // 2 - _TRACED_OPS // 2)
    for chunk in chunks[:begin]:
        encode(chunk)
    chunks = chunks[begin : begin + _TRACED_OPS]
    kept: list[list[int]] = [[]] * len(chunks)
    rise = 0
    tracemalloc.start()
    try:
        for i, chunk in enumerate(chunks):
            tracemalloc.reset_peak()
            level = tracemalloc.get_traced_memory()[0]
            kept[i] = encode(chunk)
            rise += tracemalloc.get_traced_memory()[1] - level
        blocks = len(tracemalloc.take_snapshot().traces)
    finally:
        tracemalloc.stop()
    return rise / len(chunks), blocks / len(chunks)


_COSTS = ["chunk", "way", "ns/op", "MB/s", "B/op", "allocs/op"]
_ERRORS = ["chunk", "way", "tokens", "extra", "wrong ids", "cuts in token", "broken"]


def _tables(rows: Sequence[Row]) -> list[str]:
    """What each way costs, then what it gets wrong: each table fits 80 columns."""
    costs, errors = [_COSTS], [_ERRORS]
    for row in rows:
        way = ["whole" if "offline" in row.way else f"{row.chunk_size:,}", row.way]
        costs.append([*way, f"{row.ns_per_op:,.0f}", f"{row.mb_per_s:.1f}"])
        costs[-1] += [f"{row.bytes_per_op:,.0f}", f"{row.allocs_per_op:,.1f}"]
        errors.append([*way, f"{row.tokens:,}", f"{row.extra_tokens:+,}"])
        errors[-1] += [f"{row.wrong_tokens / row.tokens:.2%}"]
        errors[-1] += [f"{row.cuts_inside_tokens / row.cuts:.1%}" if row.cuts else ""]
        errors[-1] += [f"{row.broken_chunks / row.ops:.1%}"]
    return [
        line
        for table in (costs, [[""] * len(_ERRORS)], errors)
        for line in columns(table, [True, False, *[True] * (len(table[0]) - 2)])
    ]


def main(
    path: str,
    encoding_name: str = "cl100k_base",
    chunk_sizes: Sequence[int] = DEFAULT_CHUNK_SIZES,
) -> int:
    """Print the table for the file at `path` ("-": standard input); return the exit code.

    Raises OSError, StreamtokError if the file is empty, VocabularyError for other encodings.
    """
    if encoding_name not in list_encoding_names():
        raise VocabularyError(
            f"{encoding_name} is not the name of an encoding: streamtok list shows the names"
        )
    encoding = get_encoding(encoding_name)
    with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
        data = file.read(_MAX_BYTES)
    name = "standard input" if path == "-" else path
    if not data:
        raise StreamtokError(f"{name} is empty: expected a text file")
    text = data.decode("utf-8", "replace").encode()
    note = "" if text == data else ", with U+FFFD for bytes that are not UTF-8"
    print(f"{name}: {len(data):,} bytes{note}, {encoding_name}")
    if len(data) < _LITTLE:
        print("too small for reliable figures: use a file of 1 MB or more")
    print()
    print("\n".join(_tables(measure(text, encoding, chunk_sizes))))
    return 0
