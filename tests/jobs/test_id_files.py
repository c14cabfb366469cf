"""Files of ids, read as their users read them, without our own code.

The readers of Megatron-LM and datatrove need torch. So their layouts are written here again, after
`megatron/core/datasets/indexed_dataset.py` and `datatrove/utils/dataset.py`. numpy and pyarrow read
the other formats.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamtok.jobs.rows import Row, Totals
from streamtok.jobs.sinks.by_name import FILE_FORMATS, Family
from streamtok.jobs.sinks.flat import About
from streamtok.jobs.sinks.indexed import metric
from streamtok.jobs.sinks.parquet_sink import ROW_TOKENS
from streamtok.jobs.sinks.shards import Files

GPT2 = About("gpt2", "00" * 32, 50_256)
CL100K = About("cl100k_base", "11" * 32, 100_276)


def parts_of(documents: list[list[int]], step: int) -> list[tuple[list[int], list[int]]]:
    """The documents as a pipeline passes them: blocks of `step` ids, and where documents end."""
    ids = [one for document in documents for one in document]
    ends = np.cumsum([len(document) for document in documents]).tolist()
    parts = []
    for start in range(0, max(1, len(ids)), step):
        stop = min(start + step, len(ids))
        is_last = stop == len(ids)
        # An end between two blocks comes with the first or with the second of them.
        inside = [e - start for e in ends if start < e <= stop or (e == start == 0)]
        assert is_last or stop - start == step
        parts.append((ids[start:stop], inside))
    return parts


def write(
    path: Path,
    chosen: str,
    documents: list[list[int]],
    about: About = GPT2,
    *,
    step: int = 7,
    **settings: Any,
) -> list[str]:
    """Write the documents. Returns the names of the files."""
    before = set(path.parent.iterdir())
    family = Family(chosen, about)
    files = Files(str(path), family, **settings)
    files.begin()
    for ids, ends in parts_of(documents, step):
        files.append(family.form(np.array(ids, np.uint32), np.array(ends, np.int64)))
        files.publish()
    files.finish()
    files.publish()
    return sorted(one.name for one in set(path.parent.iterdir()) - before)


# The readers


def read_megatron(prefix: str) -> list[list[int]]:
    """IndexedDataset: the header, then lengths, pointers and documents from the index."""
    index = Path(f"{prefix}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, documents = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    dtype = np.dtype({4: "<i4", 8: "<u2"}[code])
    at = 34
    lengths = np.frombuffer(index, "<i4", sequences, at)
    pointers = np.frombuffer(index, "<i8", sequences, at + lengths.nbytes)
    indices = np.frombuffer(index, "<i8", documents, at + lengths.nbytes + pointers.nbytes)
    assert len(index) == at + lengths.nbytes + pointers.nbytes + indices.nbytes
    assert indices.tolist() == list(range(sequences + 1))
    data = Path(f"{prefix}.bin").read_bytes()
    assert len(data) == dtype.itemsize * int(lengths.sum())
    return [
        np.frombuffer(data, dtype, length, pointer).tolist()
        for length, pointer in zip(lengths.tolist(), pointers.tolist(), strict=True)
    ]


def read_datatrove(path: str) -> list[list[int]]:
    """DatatroveFileDataset with load_doc_ends: ids of token_size bytes, u64 ends."""
    name, count, shown = Path(f"{path}.metadata").read_text().split("\n")
    token_size = int(name.split("|")[1])
    ids = np.fromfile(path, f"<u{token_size}")
    ends = np.fromfile(f"{path}.index", "<u8").tolist()
    assert int(count) == len(ids)
    assert shown.endswith("T")
    assert ends[-1:] in ([], [len(ids)])
    return [ids[a:b].tolist() for a, b in zip([0, *ends], ends, strict=False)]


def read_table(path: str) -> list[list[int]]:
    """The documents in the rows of a Parquet file, with rows of one document joined."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    assert table.column_names == ["document", "part", "input_ids"]
    assert table.schema.field("input_ids").type == pa.list_(pa.uint32())
    found: list[list[int]] = []
    first = table["document"][0].as_py() if table.num_rows else 0
    for row in table.to_pylist():
        if row["part"] == 0:
            assert row["document"] == first + len(found)
            found.append(row["input_ids"])
        else:
            assert row["part"] * ROW_TOKENS == len(found[-1])
            found[-1] += row["input_ids"]
    return found


DOCUMENTS = st.lists(st.lists(st.integers(0, 50_256), max_size=12), max_size=12)
FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def fresh(folder: Path) -> Path:
    path = folder / str(len(list(folder.iterdir())))
    path.mkdir()
    return path


@pytest.mark.parametrize("about", [GPT2, CL100K])
@FOLDER
@given(documents=DOCUMENTS, step=st.integers(1, 40))
def test_megatron(folder: Path, about: About, documents: list[list[int]], step: int) -> None:
    path = fresh(folder) / "ids"
    assert write(path, "megatron", documents, about, step=step) == [
        "ids.bin",
        "ids.bin.json",
        "ids.idx",
    ]
    assert read_megatron(str(path)) == [one for one in documents if one]
    assert struct.unpack_from("<B", path.with_suffix(".idx").read_bytes(), 17)[0] == (
        8 if about is GPT2 else 4
    )


@pytest.mark.parametrize("about", [GPT2, CL100K])
@FOLDER
@given(documents=DOCUMENTS, step=st.integers(1, 40))
def test_datatrove(folder: Path, about: About, documents: list[list[int]], step: int) -> None:
    path = fresh(folder) / "ids.ds"
    names = write(path, "datatrove", documents, about, step=step)
    assert names == ["ids.ds", "ids.ds.index", "ids.ds.json", "ids.ds.metadata"]
    assert read_datatrove(str(path)) == documents
    assert (
        path.with_suffix(".ds.metadata").read_text().startswith(f"{about.encoding}|{about.width}\n")
    )


@FOLDER
@given(documents=DOCUMENTS, step=st.integers(1, 40))
def test_tables(folder: Path, documents: list[list[int]], step: int) -> None:
    path = fresh(folder) / "ids.parquet"
    assert write(path, "parquet", documents, step=step) == [path.name, f"{path.name}.json"]
    assert read_table(str(path)) == documents


def pieces_of(data: bytes, header: int = 0) -> list[list[object]]:
    pieces = [one for one in (data[:header], data[header:]) if one]
    return [[len(one), hashlib.sha256(one).hexdigest()] for one in pieces]


@pytest.mark.parametrize(("chosen", "dtype"), [("u16", "uint16"), ("u32", "uint32")])
def test_raw_ids_and_their_sidecar(tmp_path: Path, chosen: str, dtype: str) -> None:
    documents = [[1, 2, 3], [], [50_000]]
    names = write(tmp_path / "a.bin", chosen, documents)
    assert names == ["a.bin", "a.bin.json"]
    row = json.loads((tmp_path / "a.bin.json").read_text())
    assert np.memmap(tmp_path / "a.bin", row["dtype"], "r").tolist() == [1, 2, 3, 50_000]
    assert row == {
        "encoding": "gpt2",
        "vocabulary_sha256": "00" * 32,
        "format": chosen,
        "dtype": dtype,
        "byteorder": "little",
        "tokens": 4,
        "documents": 3,
        "bytes": (tmp_path / "a.bin").stat().st_size,
        "pieces": pieces_of((tmp_path / "a.bin").read_bytes()),
    }


@pytest.mark.parametrize(
    ("chosen", "header", "further"),
    [
        ("text", 0, []),
        ("jsonl", 0, []),
        ("npy", 128, []),
        ("megatron", 0, [".idx"]),
        ("datatrove", 0, [".index", ".metadata"]),
    ],
)
def test_a_sidecar_has_the_digests_of_all_files(
    tmp_path: Path, chosen: str, header: int, further: list[str]
) -> None:
    names = write(tmp_path / "a", chosen, [[1, 2, 3], [], [50_000]])
    first = tmp_path / names[0]
    row = json.loads(Path(f"{first}.json").read_text())
    assert row["pieces"] == pieces_of(first.read_bytes(), header)
    base = tmp_path / "a" if chosen == "megatron" else first
    contents = {one: Path(f"{base}{one}").read_bytes() for one in further}
    assert row.get("files", {}) == {
        one: {"bytes": len(data), "pieces": pieces_of(data, begin)}
        for one, data in contents.items()
        for begin in [34 if chosen == "megatron" else 0]
    }


def test_a_document_of_many_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lengths = [3, 2 * ROW_TOKENS + 5, 0, ROW_TOKENS, ROW_TOKENS - 1, 1, 7]
    documents = [rng.integers(0, 50_000, length).tolist() for length in lengths]
    write(tmp_path / "a.parquet", "parquet", documents, step=300_001)
    assert read_table(str(tmp_path / "a.parquet")) == documents


# Limits of formats


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0.00 T"),
        (1, "1.00 T"),
        (999, "999 T"),
        (1000, "1.00 kT"),
        (9_999, "10.0 kT"),
        (911_612, "912 kT"),
        (999_983, "1.00 MT"),
        (1_500_000, "1.50 MT"),
        (45_678_901, "45.7 MT"),
        (10**11, "100 GT"),
    ],
)
def test_metric_is_that_of_humanize(count: int, shown: str) -> None:
    assert metric(count) == shown


# Shards


def shards_of(folder: Path, chosen: str = "u32") -> list[list[int]]:
    names = sorted(one for one in folder.iterdir() if one.suffix != ".json")
    return [np.fromfile(one, "<u4").tolist() for one in names]


def expected_shards(documents: list[list[int]], size: int) -> list[list[int]]:
    """The rule: a shard ends with the document that brings it to the size."""
    found: list[list[int]] = []
    is_full = True
    for document in documents:
        if is_full:
            found.append([])
        found[-1] += document
        is_full = len(found[-1]) >= size
    return found or [[]]


@FOLDER
@given(documents=DOCUMENTS, size=st.integers(1, 30), step=st.integers(1, 40))
def test_shards_end_with_documents(
    folder: Path, documents: list[list[int]], size: int, step: int
) -> None:
    path = fresh(folder)
    write(path / "a.u32", "u32", documents, step=step, shard_tokens=size)
    assert shards_of(path) == expected_shards(documents, size)
    path = fresh(folder)
    write(path / "a.ds", "datatrove", documents, step=step, shard_tokens=size)
    names = sorted(str(one) for one in path.iterdir() if one.suffix == ".ds")
    assert [one for name in names for one in read_datatrove(name)] == documents


def test_a_shard_is_published_when_it_is_full(tmp_path: Path) -> None:
    family = Family("u32", GPT2)
    files = Files(str(tmp_path / "a.u32"), family, shard_tokens=3)
    files.begin()
    files.append(family.form(np.arange(2, dtype=np.uint32), np.array([2])))
    assert not files.has_complete
    files.append(family.form(np.arange(3, dtype=np.uint32), np.array([1])))
    assert files.has_complete
    files.publish()
    files.discard()
    assert {one.name for one in tmp_path.iterdir()} == {"a_000000.u32", "a_000000.u32.json"}


@pytest.mark.parametrize("chosen", FILE_FORMATS)
@pytest.mark.parametrize("shard_tokens", [None, 10])
def test_a_row_goes_on_elsewhere(tmp_path: Path, chosen: str, shard_tokens: int | None) -> None:
    """Each row between two writes, with bytes after it that are in no row."""
    rng = np.random.default_rng(3)
    documents = [rng.integers(0, 50_000, n).tolist() for n in (3, 0, 5, 9, 1, 12, 0, 4)]
    parts = parts_of(documents, 4)
    family = Family(chosen, GPT2)
    Parts = Sequence[tuple[list[int], list[int]]]

    def feed(files: Files, some: Parts, row: Row = Row()) -> Row:  # noqa: B008 (immutable)
        pieces = [list(one) for one in row.pieces]
        documents = row.totals.documents
        for ids, ends in some:
            files.append(family.form(np.array(ids, np.uint32), np.array(ends, np.int64)))
            documents += len(ends)
            shard, sizes, new = files.end_unit()
            if shard != row.shard or not pieces:
                pieces = [[] for _ in new]
            for all_of, one in zip(pieces, new, strict=True):
                all_of += one
            row = Row(
                shard=shard,
                sizes=sizes,
                pieces=tuple(map(tuple, pieces)),
                in_shard=files.in_shard,
                totals=Totals(documents=documents),
            )
        return row

    def make(folder: str) -> Files:
        (tmp_path / folder).mkdir(exist_ok=True)
        path = str(tmp_path / folder / "a")
        return Files(path, family, shard_tokens=shard_tokens, is_resumable=True)

    whole = make("whole")
    whole.begin()
    feed(whole, parts)
    whole.finish()
    whole.publish()
    good = {one.name: one.read_bytes() for one in (tmp_path / "whole").iterdir()}
    for i in range(len(parts)):
        first = make(str(i))
        first.begin()
        row = feed(first, parts[:i])
        first.sync()
        first.publish()
        feed(first, parts[i : i + 2])
        first.close()
        second = make(str(i))
        second.go_on(row)
        feed(second, parts[i:], row)
        second.finish()
        second.publish()
        assert {one.name: one.read_bytes() for one in (tmp_path / str(i)).iterdir()} == good
