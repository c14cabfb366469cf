"""A callable that adds a column of ids to a batch: a dictionary of columns, or Arrow's."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DocumentError
from ..formats.opening import open_encoding
from ..pipeline.optional_pyarrow import load_pyarrow

if TYPE_CHECKING:
    from .._types import AllowedSpecial, DisallowedSpecial, IdArray
    from ..encoding import Encoding

_OPEN = 4  # encodings that a process keeps


class ColumnEncoder:
    """Encodes the texts of one column, batch by batch. It can be pickled.

    encoding: a name, a vocabulary file, which each process opens once, or an `Encoding`. column:
    that of the texts. output: the column of ids to add or replace. dtype: uint32, or int32 for
    engines without unsigned integers, such as Spark. The others: as for `Encoding.encode`.

    Call it with a batch: a dictionary of lists or NumPy arrays (Hugging Face's
    `datasets.map(batched=True)`, Ray Data's `map_batches`), a `pyarrow.Table` or a
    `pyarrow.RecordBatch`. The result is a new one of the same kind with the column of ids: a list
    or an array of NumPy arrays, or an Arrow list column. A text that is None gives None. The batch
    itself does not change. `map_batches` takes an iterable of batches, for Spark's `mapInArrow`.

    Raises DocumentError, a ValueError, for a text that cannot be encoded; it names the row. Raises
    KeyError if there is no such column, TypeError for other kinds of batches and of texts.
    """

    def __init__(
        self,
        encoding: str | Encoding,
        column: str = "text",
        *,
        output: str = "input_ids",
        dtype: str = "uint32",
        allowed_special: AllowedSpecial = frozenset(),
        disallowed_special: DisallowedSpecial = "all",
        errors: str = "strict",
        add_special_tokens: bool = False,
    ):
        """Raises ValueError for another dtype, and what opening the encoding raises."""
        if dtype not in ("uint32", "int32"):
            raise ValueError(f"dtype must be 'uint32' or 'int32', not {dtype!r}")
        self.encoding = encoding
        self.column = column
        self.output = output
        self.dtype = dtype
        self._settings: dict[str, Any] = {
            "allowed_special": allowed_special,
            "disallowed_special": disallowed_special,
            "errors": errors,
            "add_special_tokens": add_special_tokens,
        }
        self._open().encode("", **self._settings)  # raises now what every batch would raise

    def __call__(self, batch: Any) -> Any:
        """The batch with the column of ids."""
        if isinstance(batch, Mapping):
            return self._with_lists(batch)
        pa = load_pyarrow()
        if isinstance(batch, pa.RecordBatch):
            ids = self._arrow_column(pa, batch.column(self._index(batch)))
            return self._put(batch, ids)
        if isinstance(batch, pa.Table):
            chunks = batch.column(self._index(batch)).chunks
            made = [self._arrow_column(pa, chunk) for chunk in chunks]
            return self._put(batch, pa.chunked_array(made, self._type(pa)))
        raise TypeError(
            "a batch must be a dictionary of columns, a pyarrow.Table or a pyarrow.RecordBatch, "
            f"not {type(batch).__name__}"
        )

    def map_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Iterator: each batch with the column of ids."""
        return map(self, batches)

    def _open(self) -> Encoding:
        return _opened(self.encoding) if isinstance(self.encoding, str) else self.encoding

    def _encoded(self, texts: Iterable[Any]) -> Iterator[IdArray | None]:
        encoding = self._open()
        for row, text in enumerate(texts):
            if text is None:
                yield None
                continue
            try:
                yield encoding.encode_to_numpy(text, **self._settings)
            except ValueError as error:
                what = str(error).partition("\n")[0]
                raise DocumentError(f"row {row} of the column {self.column!r}: {what}") from error

    def _with_lists(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        texts = batch[self.column]
        rows = [
            None if ids is None else ids.astype(self.dtype, copy=False)
            for ids in self._encoded(texts)
        ]
        if not isinstance(texts, np.ndarray):
            return {**batch, self.output: rows}
        column = np.empty(len(rows), object)
        for row, ids in enumerate(rows):
            column[row] = ids
        return {**batch, self.output: column}

    def _index(self, batch: Any) -> int:
        names = batch.schema.names
        if self.column not in names:
            raise KeyError(self.column)
        return int(names.index(self.column))

    def _type(self, pa: Any) -> Any:
        return pa.list_(getattr(pa, self.dtype)())

    def _arrow_column(self, pa: Any, texts: Any) -> Any:
        rows = list(self._encoded(texts.to_pylist()))
        ends = np.cumsum([0, *(0 if ids is None else len(ids) for ids in rows)])
        if ends[-1] > np.iinfo(np.int32).max:
            raise ValueError("a batch can have at most 2 147 483 647 ids: use smaller batches")
        values = np.concatenate([np.empty(0, np.uint32), *(one for one in rows if one is not None)])
        return pa.ListArray.from_arrays(
            pa.array(ends.astype(np.int32)),
            pa.array(values.astype(self.dtype, copy=False)),
            mask=pa.array([ids is None for ids in rows], pa.bool_()),
        )

    def _put(self, batch: Any, ids: Any) -> Any:
        names = batch.schema.names
        if self.output in names:
            return batch.set_column(names.index(self.output), self.output, ids)
        return batch.append_column(self.output, ids)


@functools.lru_cache(_OPEN)
def _opened(name: str) -> Encoding:
    return open_encoding(name)
