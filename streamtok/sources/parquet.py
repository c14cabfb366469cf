"""Texts of a Parquet column, row by row, through pyarrow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..errors import DocumentError
from ..sinks.arrow import load_pyarrow
from .blocks import Waiting

_FEW = 16  # rows that are in memory at a time before their size is known; one may be a book
_MANY = 1 << 12  # rows at a time
_BATCH = 1 << 15  # bytes of text that are wanted at a time
_RELEASE = 1 << 20  # bytes of text after which memory is given back


class ParquetTexts:
    """The documents of one column. `row` is the position up to which all were given out."""

    def __init__(self, path: str, column: str, *, skip_bad: bool = False, row: int = 0):
        """column: a name, of a nested one with dots. skip_bad: count rows without a text instead.

        Raises OSError, DocumentError for no Parquet or no such column, and MissingLibraryError.
        """
        pa = load_pyarrow()
        # What ParquetFile has inside. `pyarrow.parquet` loads the clients of S3, Google and Azure,
        # too: 8 MB.
        from pyarrow._parquet import ParquetReader

        self._pool = pa.default_memory_pool()
        self._path = path
        self._column = column
        self._skip_bad = skip_bad
        self.row = row
        self.skipped = 0
        try:
            self._file = ParquetReader()
            self._file.open(path, buffer_size=1 << 16, pre_buffer=False)
            arrow = self._file.schema_arrow
            self._metadata = self._file.metadata
            self.rows: int = self._metadata.num_rows
        except pa.ArrowInvalid as error:
            what = str(error).partition("\n")[0]
            raise DocumentError(f"{path}: no Parquet that can be read: {what}") from None
        schema = self._metadata.schema
        names = [schema.column(i).path for i in range(len(schema))]
        if column in names:
            self._index = names.index(column)
        else:
            raise DocumentError(f"{path}: there is no column {column!r} but {', '.join(names)}")
        kind = arrow.field(column.partition(".")[0]).type
        for name in column.split(".")[1:]:
            kind = kind.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not (is_text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            raise DocumentError(f"{path}: the column {column!r} holds no text but {kind}")

    def texts(self, waiting: Waiting = contextlib.nullcontext) -> Iterator[list[str | bytes]]:
        """Iterator: texts of some rows; `row` and `skipped` are those after them."""
        first = unreleased = 0
        for group in range(self._metadata.num_row_groups):
            size = self._metadata.row_group(group).num_rows
            start, first = max(self.row - first, 0), first + size
            if start >= size:
                continue
            for batch in self._batches(group, start, waiting):
                values = batch.column(0)
                for name in self._column.split(".")[1:]:
                    values = values.field(name)
                unreleased += values.nbytes
                found = values.to_pylist()
                texts = [text for text in found if text is not None]
                if len(texts) < len(found):
                    self._skip(found)
                self.row += len(found)
                del batch, values, found
                if unreleased > _RELEASE:
                    unreleased = 0
                    self._pool.release_unused()
                yield texts

    def _batches(self, group: int, start: int, waiting: Waiting) -> Iterator[Any]:
        """Iterator of batches of about _BATCH bytes: the rows of a group from number `start` on."""

        def read(rows: int) -> Iterator[Any]:
            found: Iterator[Any] = self._file.iter_batches(
                rows, row_groups=[group], column_indices=[self._index], use_threads=False
            )
            return found

        # The file says how large rows are before they are unpacked from a dictionary, if there is
        # one: the first few show more.
        about = self._metadata.row_group(group)
        size = about.column(self._index).total_uncompressed_size // about.num_rows
        with waiting():
            batch = next(read(min(max(_BATCH // max(size, 1), 1), _FEW)))
        size = max(size, batch.nbytes // batch.num_rows, 1)
        batches = read(min(max(_BATCH // size, 1), _MANY))
        del batch
        while True:
            with waiting():
                batch = next(batches, None)
            if batch is None:
                return
            if start >= batch.num_rows:
                start -= batch.num_rows
                continue
            yield batch.slice(start)
            start = 0

    def _skip(self, found: list[Any]) -> None:
        """Count the rows without a text, or raise DocumentError for the first."""
        if not self._skip_bad:
            row = self.row + found.index(None)
            raise DocumentError(f"{self._path}: row {row} has no text; --skip-bad-lines goes on")
        self.skipped += found.count(None)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
