"""Files of ids, read as their users read them, without our own code.

The readers of Megatron-LM and datatrove need torch. So their layouts are written here again, after
`megatron/core/datasets/indexed_dataset.py` and `datatrove/utils/dataset.py`. numpy and pyarrow read
the other formats.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from streamtok.jobs.sinks.by_name import Family
from streamtok.jobs.sinks.flat import About
from streamtok.jobs.sinks.indexed import metric
from streamtok.jobs.sinks.parquet_sink import ROW_TOKENS
from streamtok.jobs.sinks.shards import Files

GPT2 = About("gpt2", "00" * 32, 50_256)


def write(path: Path, chosen: str, documents: list[list[int]], step: int = 7) -> None:
    """Write the documents as a pipeline passes them: blocks of `step` ids, and where they end."""
    family = Family(chosen, GPT2)
    files = Files(str(path), family)
    files.begin()
    ids = np.array([one for document in documents for one in document], np.uint32)
    ends = np.cumsum([len(document) for document in documents])
    for start in range(0, len(ids), step):
        is_first = (ends == 0) & (start == 0)
        is_inside = is_first | ((start < ends) & (ends <= start + step))
        files.append(family.form(ids[start : start + step], ends[is_inside] - start))
    files.finish()
    files.publish()


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


def pieces_of(data: bytes, header: int = 0) -> list[list[object]]:
    pieces = [one for one in (data[:header], data[header:]) if one]
    return [[len(one), hashlib.sha256(one).hexdigest()] for one in pieces]


@pytest.mark.parametrize(("chosen", "dtype"), [("u16", "uint16"), ("u32", "uint32")])
def test_raw_ids_and_their_sidecar(tmp_path, chosen, dtype):
    documents = [[1, 2, 3], [], [50_000]]
    write(tmp_path / "a.bin", chosen, documents)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.bin", "a.bin.json"]
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


def test_a_document_of_many_rows(tmp_path):
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
def test_metric_is_that_of_humanize(count, shown):
    assert metric(count) == shown


# Shards


def test_a_shard_is_published_when_it_is_full(tmp_path):
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


def test_an_index_of_more_documents_than_are_read_at_a_time(tmp_path):
    """The pointers are made of the lengths, and written after them while they are read."""
    family = Family("megatron", GPT2)
    files = Files(str(tmp_path / "a"), family)
    files.begin()
    count = 200_000
    ends = np.arange(2, 2 * count + 1, 2, dtype=np.int64)
    files.append(family.form(np.zeros(2 * count, np.uint32), ends))
    files.finish()
    files.publish()
    index = (tmp_path / "a.idx").read_bytes()
    assert len(index) == 34 + 12 * count + 8 * (count + 1)
    pointers = np.frombuffer(index, "<i8", count, 34 + 4 * count)
    assert pointers.tolist() == list(range(0, 4 * count, 4))
