"""A column of ids: the same for every kind of batch, and in the engines that call for it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import streamtok
from streamtok import ColumnEncoder, DocumentError

from ..doc_blocks import block_that_has

ENC = streamtok.get_encoding("gpt2")
TEXTS = ["some text", "", None, "日本語 " * 30, "x\n" * 99]
IDS = [None if text is None else ENC.encode(text) for text in TEXTS]


def lists(column: Any) -> list[Any]:
    return [None if ids is None else list(map(int, ids)) for ids in column]


@pytest.mark.parametrize("dtype", ["uint32", "int32"])
def test_dictionaries(dtype: str) -> None:
    encoder = ColumnEncoder("gpt2", dtype=dtype)
    batch = {"text": TEXTS, "n": [1, 2, 3, 4, 5]}
    made = encoder(batch)
    assert list(batch) == ["text", "n"]
    assert list(made) == ["text", "n", "input_ids"]
    assert lists(made["input_ids"]) == IDS
    assert made["input_ids"][0].dtype == dtype
    arrays = encoder({"text": np.array(TEXTS, object)})
    assert isinstance(arrays["input_ids"], np.ndarray)
    assert lists(arrays["input_ids"]) == IDS
    same = encoder({"text": np.array(["a", "b"], object)})["input_ids"]
    assert same.shape == (2,)  # not a table of two rows


@pytest.mark.parametrize("dtype", ["uint32", "int32"])
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_arrow(dtype: str, kind: Any) -> None:
    encoder = ColumnEncoder("gpt2", "body", output="ids", dtype=dtype)
    column = pa.array(TEXTS, pa.string()).cast(kind)
    batch = pa.record_batch({"n": list(range(5)), "body": column})
    made = encoder(batch)
    assert isinstance(made, pa.RecordBatch)
    assert made.schema.names == ["n", "body", "ids"]
    assert made.schema.field("ids").type == pa.list_(getattr(pa, dtype)())
    made.validate(full=True)
    assert made.column(2).to_pylist() == IDS
    table = pa.Table.from_batches([batch, batch.slice(1, 2)])
    made = encoder(table)
    assert isinstance(made, pa.Table)
    made.validate(full=True)
    assert made.column("ids").to_pylist() == IDS + IDS[1:3]
    assert encoder(made).schema == made.schema  # the column is replaced
    assert encoder(table.slice(0, 0)).schema == made.schema
    assert [one.num_rows for one in encoder.map_batches([batch, batch])] == [5, 5]


def test_settings_and_pickles() -> None:
    settings: Any = {"allowed_special": "all", "errors": "replace"}
    for encoding in ("gpt2", ENC):
        encoder = ColumnEncoder(encoding, **settings)
        encoder({"text": ["before"]})
        state = pickle.dumps(encoder)
        assert len(state) < 1000
        batch = {"text": ["a<|endoftext|>b"]}
        assert lists(pickle.loads(state)(batch)["input_ids"]) == [[64, 50256, 65]]
        assert pickle.dumps(encoder) == state  # engines compare it with an earlier one


def test_what_is_wrong_is_named() -> None:
    encoder = ColumnEncoder("gpt2")
    with pytest.raises(DocumentError, match=r"row 1 of the column 'text': the text has the disal"):
        encoder({"text": ["good", "bad <|endoftext|>"]})
    with pytest.raises(DocumentError, match="row 0 of the column 'text'"):
        encoder(pa.table({"text": [b"\xff"]}))
    for batch in ({"body": []}, pa.table({"body": ["x"]})):
        with pytest.raises(KeyError, match="text"):
            encoder(batch)
    with pytest.raises(TypeError, match=r"a batch must be a dictionary of columns.* not list"):
        encoder([["x"]])
    with pytest.raises(ValueError, match="dtype must be 'uint32' or 'int32'"):
        ColumnEncoder("gpt2", dtype="int64")
    with pytest.raises(ValueError, match="no-such"):
        ColumnEncoder("no-such")


class Frame:
    """Stands for Spark's frame: calls the function as it does, and keeps what comes."""

    def mapInArrow(self, function: Any, schema: str) -> Frame:
        batch = pa.record_batch({"text": pa.array(TEXTS, pa.string())})
        self.made = list(function(iter([batch, batch])))
        self.schema = schema
        return self


def test_the_recipe_for_spark_gives_what_its_schema_says() -> None:
    """test_spark.py runs it on Spark itself."""
    names: dict[str, Any] = {"streamtok": streamtok, "frame": Frame()}
    exec(block_that_has("howto/frameworks.md", "python", "mapInArrow"), names)
    found = names["frame"]
    assert found.schema == "text string, input_ids array<int>"
    assert len(found.made) == 2
    for batch in found.made:
        assert batch.schema == pa.schema({"text": pa.string(), "input_ids": pa.list_(pa.int32())})
        ids = batch.column("input_ids").to_pylist()
        enc = streamtok.get_encoding("cl100k_base")
        assert ids == [None if text is None else enc.encode(text) for text in TEXTS]
