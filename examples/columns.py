"""Add a column of ids to tables of other libraries. Each process opens the encoding once.

Copy what you need. Calls in each library:

    rows.map(add_ids, batched=True, num_proc=8)                        # Hugging Face's datasets
    rows.map_batches(add_ids, batch_format="numpy")                    # Ray Data
    frame.mapInArrow(add_ids_to_arrow, "text string, ids array<int>")  # Spark, with pandas
    frame["ids"] = ids_of(frame["text"])                               # pandas
    frame.with_columns(polars.Series("ids", ids_of(frame["text"])))    # polars
    table = duckdb.sql("from 'in.parquet'").fetch_record_batch()       # DuckDB
    pyarrow.Table.from_batches(add_ids_to_arrow(table))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import streamtok

ENCODING, TEXT, IDS = "cl100k_base", "text", "ids"


def ids_of(texts: Iterable[Any]) -> list[np.ndarray | None]:
    """The ids of each text as int32, a type that Spark has, too; None for a missing text."""
    encoding = streamtok.get_encoding(ENCODING)  # or a cached streamtok.load(FILE)
    found: list[np.ndarray | None] = []
    for row, text in enumerate(texts):
        try:
            is_missing = text is None or isinstance(text, float)  # NaN, in pandas
            found.append(None if is_missing else encoding.encode_to_numpy(text).astype(np.int32))
        except ValueError as error:  # such as a special token in the text
            raise ValueError(f"row {row}: {error}") from error
    return found


def add_ids(batch: dict[str, Any]) -> dict[str, Any]:
    """The dictionary of columns, with `ids` added."""
    ids = ids_of(batch[TEXT])
    column = np.empty(len(ids), object)  # rows of different lengths
    column[:] = ids
    return {**batch, IDS: column if isinstance(batch[TEXT], np.ndarray) else ids}


def add_ids_to_arrow(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches of Arrow records, with a column `ids` added."""
    import pyarrow as pa

    for batch in batches:
        ids = pa.array(ids_of(batch.column(TEXT).to_pylist()), pa.list_(pa.int32()))
        yield pa.record_batch([*batch.columns, ids], [*batch.schema.names, IDS])
