"""Streams: naive versus incremental at 256 B, 4 KiB and 64 KiB, compared before they are timed.

`pytest benchmarks/ --benchmark-enable --benchmark-only`. The errors of the naive way are in
`extra_info`; `streamtok bench FILE` prints them as a table.
"""

from __future__ import annotations

import dataclasses

import pytest

import streamtok
from streamtok.cli import measure as bench

from .conftest import ENCODING

SIZES = bench.DEFAULT_CHUNK_SIZES


@pytest.fixture(scope="module")
def encoding() -> streamtok.Encoding:
    return streamtok.get_encoding(ENCODING)


@pytest.fixture(scope="module")
def rows(encoding, text) -> dict[tuple[str, int], bench.Row]:
    """The costs and errors of each way, measured once per text."""
    return {(r.way, r.chunk_size): r for r in bench.measure(text.encode(), encoding, rounds=1)}


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", SIZES)
def test_naive(benchmark, encoding, text, rows, size):
    chunks = cut(text.encode(), size)
    row = rows["naive", size]
    assert row.wrong_tokens > 0
    assert row.cuts_inside_tokens > 0 or len(chunks) < 10  # few cuts may all miss

    def run():
        for chunk in chunks:
            encoding.encode(chunk.decode("utf-8", "replace"), disallowed_special=())

    _report(benchmark, "naive", row)
    benchmark.pedantic(run, rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("size", SIZES)
def test_incremental(benchmark, encoding, text, rows, size):
    chunks = cut(text.encode(), size)
    row = rows["incremental", size]
    assert (row.wrong_tokens, row.broken_chunks) == (0, 0)
    ids = [i for part in encoding.iterencode(chunks, disallowed_special=()) for i in part]
    assert ids == encoding.encode(text, disallowed_special=())

    def run():
        stream = encoding.stream_encoder(disallowed_special=())
        for chunk in chunks:
            stream.encode(chunk)
        stream.flush()

    _report(benchmark, "incremental", row)
    benchmark.pedantic(run, rounds=5, warmup_rounds=1)


def test_decode_stream(benchmark, encoding, text):
    ids = encoding.encode(text, disallowed_special=())
    parts = [ids[start : start + 64] for start in range(0, len(ids), 64)]

    def run():
        decoder = encoding.stream_decoder()
        return "".join([*map(decoder.decode, parts), decoder.flush()])

    assert run() == text
    benchmark.pedantic(run, rounds=5, warmup_rounds=1)


def _report(benchmark, way: str, row: bench.Row) -> None:
    benchmark.group = f"stream of chunks of {row.chunk_size} bytes"
    benchmark.extra_info.update(dataclasses.asdict(row), way=way)
