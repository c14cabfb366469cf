"""Which columns of a Parquet file hold texts, and the messages about the others."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamtok
from streamtok.errors import DocumentError
from streamtok.jobs.sources import parquet_texts
from streamtok.jobs.sources.parquet_texts import ParquetTexts

from ..cli.test_cli import fails, run

TEXTS = [f"text {i} ü" for i in range(300)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    table = pa.table({
        "number": range(300),
        "a.b": TEXTS,
        "lists": [[text, "x"] for text in TEXTS],
        "pairs": pa.array([[(text, "x")] for text in TEXTS], pa.map_(pa.string(), pa.string())),
        "a": [{"b": text.upper(), "c": text.upper()} for text in TEXTS],
        "some": [text if i % 3 else None for i, text in enumerate(TEXTS)],
        "fixed": pa.array([b"1234"] * 300, pa.binary(4)),
        "price": pa.array(range(300), pa.decimal128(30)),
        "json": pa.array(['{"a": 1}'] * 300, pa.json_(pa.string())),
        "last": TEXTS,
    })  # fmt: skip
    name = tmp_path / "a.parquet"
    pq.write_table(table, name, row_group_size=70)
    return str(name)


def read(path: str, column: str, **more: Any) -> list[Any]:
    return list(itertools.chain.from_iterable(ParquetTexts(path, column, **more).texts()))


def test_a_name_with_a_dot_is_the_column_and_not_the_field(path):
    assert read(path, "a.b") == TEXTS
    assert read(path, "last") == TEXTS
    assert read(path, "json") == ['{"a": 1}'] * 300
    assert run("count", "--parquet", "a.b", path).returncode == 0
    for row in (0, 1, 69, 70, 71, 150, 299, 300):
        assert read(path, "last", row=row) == TEXTS[row:]


def test_a_row_without_a_text(path):
    with pytest.raises(DocumentError, match="row group 0 row 0: no text"):
        read(path, "some")
    assert read(path, "some", on_bad=lambda bad: None) == [t for i, t in enumerate(TEXTS) if i % 3]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("lists", "'lists' holds list<element: string>: each row must be one text"),
        ("pairs", "'pairs' holds map<string, string"),
        ("a", "'a' holds struct<b: string, c: string>"),
        ("number", "'number' holds int64"),
        ("fixed", "'fixed' holds fixed_size_binary"),
        ("price", "'price' holds decimal"),
        ("nothing", "no column 'nothing'; the columns of texts are a.b, some, json, last"),
        ("a.c", "no column 'a.c'"),
        ("", "no column ''"),
    ],
)
def test_columns_that_are_no_texts(path, column, message):
    with pytest.raises(DocumentError, match=message.replace(".", r"\.")):
        ParquetTexts(path, column)
    error = fails("encode", "--parquet", column, path)
    assert error.startswith(f"{path}: ")


def test_every_name_that_a_message_suggests_can_be_read(path):
    message = fails("count", "--parquet", "nothing", path)
    for column in message.partition("the columns of texts are ")[2].split(", "):
        assert len(read(path, column, on_bad=lambda bad: None)) >= 200


def test_every_kind_of_text(tmp_path):
    path = str(tmp_path / "a.parquet")
    table = pa.table({
        "large": pa.array(TEXTS, pa.large_string()),
        "binary": pa.array([text.encode() for text in TEXTS], pa.binary()),
        "coded": pa.array(TEXTS).dictionary_encode(),
    })  # fmt: skip
    pq.write_table(table, path)
    assert read(path, "large") == read(path, "coded") == TEXTS
    assert read(path, "binary") == [text.encode() for text in TEXTS]


def test_batches_of_about_one_size(tmp_path):
    """Long rows one by one, short ones many at a time, also where a dictionary hides their size."""
    path = str(tmp_path / "a.parquet")
    for texts, most in ((["x" * 100_000] * 50, 1), ([f"{i}" * 50_000 for i in range(50)], 1)):
        pq.write_table(pa.table({"text": texts}), path)
        batches = list(ParquetTexts(path, "text").texts())
        assert [text for batch in batches for text in batch] == texts
        assert max(map(len, batches)) <= most
    pq.write_table(pa.table({"text": [f"row {i}" for i in range(5_000)]}), path)
    assert max(map(len, ParquetTexts(path, "text").texts())) > 500


def test_a_file_without_a_column_of_text(tmp_path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a")
    with pytest.raises(DocumentError, match="no column 'text'; none has texts"):
        ParquetTexts(str(tmp_path / "a"), "text")
    (tmp_path / "b").write_bytes(b"no parquet at all")
    with pytest.raises(DocumentError, match="not a readable Parquet file"):
        ParquetTexts(str(tmp_path / "b"), "text")


def test_texts_that_are_not_utf8(tmp_path):
    """As in every other input: an error with its place, or what --errors says."""
    enc = streamtok.get_encoding("cl100k_base")
    rows = [b"one", b"t\xffo", b"three"]
    raw = pa.Array.from_buffers(pa.string(), 3, pa.array(rows, pa.binary()).buffers())
    for column in (raw, raw.dictionary_encode()):
        name = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": column}), name)
        error = fails("count", "--parquet", "text", "--errors", "strict", str(name))
        assert "row group 0 row 1: byte 1 is not UTF-8" in error
        for errors in ("replace", "surrogateescape"):
            done = run("count", "--parquet", "text", "--errors", errors, str(name))
            expected = sum(enc.count(row, errors=errors) for row in rows)
            assert int(done.stdout.split()[0]) == expected


SETTINGS: list[dict[str, Any]] = [
    {},
    {"use_dictionary": False},
    {"data_page_version": "2.0", "compression": "gzip"},
    {"column_encoding": {"text": "DELTA_BYTE_ARRAY"}, "use_dictionary": False},
    {"dictionary_pagesize_limit": 10},
    {"write_page_checksum": True, "write_page_index": True, "compression": "none"},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_kind_of_page(tmp_path, settings):
    texts = ["ab" * (i % 7) for i in range(400)] + ["long " * 1_000] * 3 + ["é"] * 50
    path = str(tmp_path / "a.parquet")
    table = pa.table({"text": texts, "n": range(len(texts))})
    pq.write_table(table, path, row_group_size=190, data_page_size=100, **settings)
    assert read(path, "text") == texts


def test_a_text_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_texts, "MAX_TEXT", 1000)
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["x", "a" * 1001]}), path)
    with pytest.raises(DocumentError, match="row 1: the text has 1,001 bytes"):
        read(path, "text")


def test_damage_is_a_named_error(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": TEXTS}), path, write_page_checksum=True)
    sound = path.read_bytes()
    for cut in (b"", sound[:5], sound[:-9], b"PAR1" + sound[40:]):
        path.write_bytes(cut)
        with pytest.raises(DocumentError, match=str(path)):
            read(str(path), "text")
