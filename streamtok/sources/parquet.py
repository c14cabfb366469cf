"""Texts of a Parquet column, row by row, through pyarrow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..errors import DocumentError
from ..sinks.arrow import load_pyarrow
from .blocks import Waiting

_ROWS = 16  # that are in memory at a time; one may be a book


class ParquetTexts:
    """The documents of one column. `row` is the position up to which all were given out."""

    def __init__(self, path: str, column: str, *, skip_bad: bool = False, row: int = 0):
        """column: a name, of a nested one with dots. skip_bad: count rows without a text instead.

        Raises OSError, DocumentError for no Parquet or no such column, and MissingLibraryError.
        """
        pa = load_pyarrow()
        from pyarrow.parquet import ParquetFile

        self._pool = pa.default_memory_pool()
        self._path = path
        self._column = column
        self._skip_bad = skip_bad
        self.row = row
        self.skipped = 0
        try:
            self._file = ParquetFile(path, buffer_size=1 << 16, pre_buffer=False)
            arrow = self._file.schema_arrow
            self.rows: int = self._file.metadata.num_rows
        except pa.ArrowInvalid as error:
            what = str(error).partition("\n")[0]
            raise DocumentError(f"{path}: no Parquet that can be read: {what}") from None
        names = [one.path for one in self._columns()]
        if column not in names:
            raise DocumentError(f"{path}: there is no column {column!r} but {', '.join(names)}")
        kind = arrow.field(column.partition(".")[0]).type
        for name in column.split(".")[1:]:
            kind = kind.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not (is_text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            raise DocumentError(f"{path}: the column {column!r} holds no text but {kind}")

    def _columns(self) -> list[Any]:
        schema = self._file.schema
        return [schema.column(i) for i in range(len(schema))]

    def texts(self, waiting: Waiting = contextlib.nullcontext) -> Iterator[list[str | bytes]]:
        """Iterator: texts of some rows; `row` and `skipped` are those after them."""
        metadata = self._file.metadata
        group, first = 0, 0
        while group < metadata.num_row_groups:
            size = metadata.row_group(group).num_rows
            if first + size > self.row:
                break
            group, first = group + 1, first + size
        skip = self.row - first
        batches = self._file.iter_batches(
            batch_size=_ROWS,
            row_groups=list(range(group, metadata.num_row_groups)),
            columns=[self._column],
            use_threads=False,
        )
        while True:
            with waiting():
                batch = next(batches, None)
            if batch is None:
                return
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            values = batch.column(0)
            for name in self._column.split(".")[1:]:
                values = values.field(name)
            found = values.to_pylist()[skip:]
            skip = 0
            texts = []
            for i, text in enumerate(found):
                if text is None:
                    if not self._skip_bad:
                        raise DocumentError(
                            f"{self._path}: row {self.row + i} has no text; "
                            "--skip-bad-lines goes on"
                        )
                    self.skipped += 1
                else:
                    texts.append(text)
            self.row += len(found)
            del batch, values, found
            self._pool.release_unused()
            yield texts

    def close(self) -> None:
        """Close the file."""
        self._file.close()
