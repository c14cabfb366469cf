"""Texts of a Parquet column, row by row, through pyarrow."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from ...errors import DocumentError
from ..sinks.arrow import load_pyarrow
from .blocks import Waiting

_FEW = 16  # rows that are in memory at a time before their size is known; one may be a book
_MANY = 1 << 12  # rows at a time
_BATCH = 1 << 15  # bytes of text that are wanted at a time
_LISTS = "lists"
_TEXT_TYPES = ("STRING", "ENUM", "JSON", "NONE")
_INSIDE_LIST = re.compile(r"\.(?:list|key_value|bag|array|element)\b")  # names that writers make up
_RELEASE = 1 << 20  # bytes of text after which memory is given back


class ParquetTexts:
    """The documents of one column. `row` is the position up to which all were given out."""

    def __init__(self, path: str, column: str, *, skip_bad: bool = False, row: int = 0):
        """column: a name, or the names of a field of it and those around it, with dots between; a
        column whose name has dots goes before a field. skip_bad: count rows without a text instead.

        Raises OSError, DocumentError for no Parquet or no such column, and MissingLibraryError.
        """
        pa = load_pyarrow()
        # What ParquetFile has inside. `pyarrow.parquet` loads the clients of S3, Google and Azure,
        # too: 8 MB.
        from pyarrow._parquet import ParquetReader

        self._pool = pa.default_memory_pool()
        self._arrow_error = pa.ArrowException
        self._path = path
        self._skip_bad = skip_bad
        self.row = row
        self.skipped = 0
        try:
            self._file = ParquetReader()
            self._file.open(path, buffer_size=1 << 16, pre_buffer=False)
            self._metadata = self._file.metadata
            self.rows: int = self._metadata.num_rows
            self._index = _find_column(path, self._metadata.schema, column)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._damage(error, "no Parquet that can be read") from None

    def texts(self, waiting: Waiting = contextlib.nullcontext) -> Iterator[list[str | bytes]]:
        """Iterator: texts of some rows; `row` and `skipped` are those after them."""
        first = unreleased = 0
        for group in range(self._metadata.num_row_groups):
            size = self._metadata.row_group(group).num_rows
            start, first = max(self.row - first, 0), first + size
            if start >= size:
                continue
            for batch in self._batches(group, start, waiting):
                values = _texts_in(batch.column(0))
                unreleased += values.nbytes
                found = _as_list(values)
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
        """Iterator of batches of about _BATCH bytes: the rows of a group from number `start` on.

        Raises DocumentError for what is damaged.
        """

        def next_of(batches: Iterator[Any]) -> Any:
            try:
                with waiting():
                    return next(batches, None)
            except (self._arrow_error, OSError) as error:
                what = f"the Parquet file is damaged behind row {self.row}"
                raise self._damage(error, what) from None

        def read(rows: int) -> Iterator[Any]:
            found: Iterator[Any] = self._file.iter_batches(
                rows, row_groups=[group], column_indices=[self._index], use_threads=False
            )
            return found

        # The file says how large rows are before they are unpacked from a dictionary, if there is
        # one: the first few show more.
        about = self._metadata.row_group(group)
        size = about.column(self._index).total_uncompressed_size // about.num_rows
        batch = next_of(read(min(max(_BATCH // max(size, 1), 1), _FEW)))
        if batch is None:
            raise DocumentError(f"{self._path}: the Parquet file is damaged: rows are missing")
        size = max(size, batch.nbytes // batch.num_rows, 1)
        batches = read(min(max(_BATCH // size, 1), _MANY))
        del batch
        while True:
            batch = next_of(batches)
            if batch is None:
                return
            if start >= batch.num_rows:
                start -= batch.num_rows
                continue
            yield batch.slice(start)
            start = 0

    def _damage(self, error: Exception, what: str) -> Exception:
        """Exception: the error itself if the system has raised it, else one with its first line."""
        if getattr(error, "errno", None):
            return error
        return DocumentError(f"{self._path}: {what}: {str(error).partition(chr(10))[0]}")

    def _skip(self, found: list[Any]) -> None:
        """Count the rows without a text, or raise DocumentError for the first."""
        if not self._skip_bad:
            row = self.row + found.index(None)
            raise DocumentError(f"{self._path}: row {row} has no text; --skip-bad-lines goes on")
        self.skipped += found.count(None)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _find_column(path: str, schema: Any, column: str) -> int:
    """int: the number of the leaf of this name. Raises DocumentError if it holds no texts."""
    leaves = [schema.column(i) for i in range(len(schema))]
    found = [i for i, one in enumerate(leaves) if one.path == column]
    if found:
        # Of a column "a.b" and a field b of column a, the name without a dot around is the field's.
        index = max(found, key=lambda i: leaves[i].name == column)
        kind = _other_kind(leaves[index])
        if kind is None:
            return index
    else:
        inside = [one for one in leaves if one.path.startswith(f"{column}.")]
        texts = [one.path for one in inside if _other_kind(one) is None]
        if texts:
            raise DocumentError(
                f"{path}: the column {column!r} has no text itself; name one of its fields: "
                f"{', '.join(texts)}"
            )
        if not inside:
            texts = list(dict.fromkeys(one.path for one in leaves if _other_kind(one) is None))
            which = f"those with text are {', '.join(texts)}" if texts else "and none with text"
            raise DocumentError(
                f"{path}: there is no column {column!r}{';' if texts else ','} {which}"
            )
        kind = _other_kind(inside[0])
    if kind == _LISTS:
        name = _INSIDE_LIST.split(column)[0]
        raise DocumentError(f"{path}: the column {name!r} holds lists; each row must be one text")
    raise DocumentError(f"{path}: the column {column!r} holds no text but {kind}")


def _other_kind(leaf: Any) -> str | None:
    """str | None: what a leaf of the schema holds; None if that is one text a row."""
    if leaf.max_repetition_level:
        return _LISTS
    logical = leaf.logical_type.type
    if leaf.physical_type == "BYTE_ARRAY" and logical in _TEXT_TYPES:
        return None
    return str(leaf.physical_type if logical == "NONE" else logical).lower()


def _texts_in(values: Any) -> Any:
    """The texts in a column of which one leaf was read."""
    while values.type.num_fields == 1 and hasattr(values, "field"):  # a struct
        values = values.field(0)
    return values.storage if hasattr(values, "storage") else values


def _as_list(values: Any) -> list[str | bytes | None]:
    try:
        found: list[str | bytes | None] = values.to_pylist()
    except UnicodeDecodeError:  # bytes then: the encoder knows what to do with errors in them
        if hasattr(values, "dictionary_decode"):
            values = values.dictionary_decode()
        found = values.cast("large_binary").to_pylist()
    return found
