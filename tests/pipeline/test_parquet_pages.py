"""Parquet files whose pages or rows are larger than the file: memory is bounded."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamtok.errors import DocumentError
from streamtok.pipeline.sources import parquet, parquet_pages
from streamtok.pipeline.sources.parquet import ParquetTexts

MB = 1_000_000
SOURCE = """
import resource, sys
import pyarrow.parquet
from streamtok.errors import DocumentError
from streamtok.pipeline.sources.parquet import ParquetTexts
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
outcome = "read"
try:
    for texts in ParquetTexts(sys.argv[1], "text").texts():
        pass
except DocumentError as error:
    outcome = str(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1000, outcome)
"""


def repeated(length: int, times: int) -> Any:
    """A column of few letters, and then of a long text again and again, in a dictionary."""
    rows = pa.array([0] * 40 + [1] * times)
    return pa.DictionaryArray.from_arrays(rows, pa.array(["x", "b" * length]))


BOMBS = {
    "a dictionary page": (["a" * 200 * MB], {}, "200,000,004 bytes, unpacked"),
    "a data page": (["a" * 200 * MB], {"use_dictionary": False}, "200,000,010 bytes, unpacked"),
    "a text": (
        ["x", "a" * 70 * MB], {"use_dictionary": False}, "row 1: the text has 70,000,000 bytes",
    ),
    "rows of a dictionary": (
        repeated(20 * MB, 60), {"dictionary_pagesize_limit": 1 << 28}, "read",
    ),
    "rows that begin alike": (
        ["x"] * 40 + ["b" * 20 * MB] * 60,
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
        "read",
    ),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB")
@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_much_takes_little_memory(name: str, tmp_path: Path) -> None:
    column, settings, outcome = BOMBS[name]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": column}), path, compression="zstd", **settings)
    assert path.stat().st_size < 100_000
    done = subprocess.run(
        [sys.executable, "-c", SOURCE, str(path)],
        check=False, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    megabytes, _, found = done.stdout.strip().partition(" ")
    assert outcome in found
    assert int(megabytes) < 500


TEXTS = ["ab" * (i % 7) for i in range(400)] + ["long " * 1_000] * 3 + [None, "é"] * 50


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"use_dictionary": False},
        {"data_page_version": "2.0", "compression": "gzip"},
        {"column_encoding": {"text": "DELTA_BYTE_ARRAY"}, "use_dictionary": False},
        {"column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}, "use_dictionary": False},
        {"dictionary_pagesize_limit": 10},
        {"write_page_checksum": True, "write_page_index": True, "compression": "none"},
        {"write_statistics": False, "store_schema": False},
    ],
)
def test_every_page_is_looked_at(tmp_path: Path, settings: Any, monkeypatch: Any) -> None:
    """What is read is all that was written, and the last header leads to the end of the chunk."""
    path = str(tmp_path / "a.parquet")
    table = pa.table({"text": TEXTS, "n": range(len(TEXTS))})
    pq.write_table(
        table, path, row_group_size=190, data_page_size=100, write_batch_size=20, **settings
    )
    seen = []
    page_at = parquet_pages.PageGuard._page_at

    def noted(guard: Any, *args: Any) -> Any:
        seen.append(page_at(guard, *args))
        return seen[-1]

    monkeypatch.setattr(parquet_pages.PageGuard, "_page_at", noted)
    texts = ParquetTexts(path, "text", on_bad=lambda bad: None)
    found = itertools.chain.from_iterable(texts.texts())
    assert list(found) == [text for text in TEXTS if text is not None]
    ends = {page.end for page in seen}
    for group in range(texts._metadata.num_row_groups):
        chunk = texts._metadata.row_group(group).column(0)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        assert start + chunk.total_compressed_size in ends
    assert len(ends) > texts._metadata.num_row_groups


def test_the_footer_need_not_be_true(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(parquet_pages, "MAX_PAGE", 4_000)
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["a" * 900] * 2}), path, use_dictionary=False)
    assert len(list(ParquetTexts(path, "text").texts())) > 0
    monkeypatch.setattr(parquet_pages, "MAX_PAGE", 1_000)
    with pytest.raises(DocumentError, match=r"a.parquet: the page at byte 4 has 1,8.. bytes"):
        list(ParquetTexts(path, "text").texts())
    monkeypatch.setattr(parquet, "MAX_TEXT", 10)
    monkeypatch.setattr(parquet_pages, "MAX_PAGE", 4_000)
    with pytest.raises(DocumentError, match="row 0: the text has 900 bytes"):
        list(ParquetTexts(path, "text").texts())


def test_damaged_headers_end_in_a_named_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"text {i}" for i in range(50)]}), path, data_page_size=64)
    sound = path.read_bytes()
    rng = random.Random(1)
    errors = []
    for _ in range(300):
        data = bytearray(sound)
        for _ in range(rng.choice([1, 1, 3])):
            data[rng.randrange(4, 400)] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        path.write_bytes(data)
        try:
            list(ParquetTexts(str(path), "text").texts())
        except DocumentError as error:
            errors.append(str(error))
    assert len(errors) > 50
    assert all(str(path) in error for error in errors)
