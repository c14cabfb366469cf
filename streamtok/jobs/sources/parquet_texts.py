"""Reads the texts of a Parquet column, row by row, through pyarrow."""

from __future__ import annotations

import bisect
import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

from ...errors import DocumentError
from ...threads import cached_property
from ..optional_pyarrow import load_pyarrow, open_for_pyarrow
from .blocks import Waiting
from .records import BadRecord, OnBad, Positions
from .unit_ends import next_multiple

MAX_TEXT = 1 << 26  # bytes of one text; the limit for JSON lines is the same
_FEW = 16  # rows in the first batch, because the size of a row is not known yet
_MANY = 1 << 12  # maximum rows in later batches
_BATCH = 1 << 15  # approximate bytes of text per batch
_RELEASE = 1 << 20  # bytes of text after which unused memory is returned to the system


class ParquetTexts:
    """The texts of one column. `row` is the number of rows emitted or skipped so far."""

    def __init__(
        self,
        path: str,
        column: str,
        *,
        on_bad: OnBad | None = None,
        row: int = 0,
    ):
        """Open the file, to begin at row number `row`.

        on_bad: called with rows without a text; if None, they are errors. Raises OSError,
        MissingLibraryError, and DocumentError if the file is not Parquet or has no such column of
        texts.
        """
        pa = load_pyarrow()
        from pyarrow.parquet import ParquetFile

        self._pool = pa.default_memory_pool()
        self._arrow_error = pa.ArrowException
        self._path = path
        self._column = column
        self._on_bad = on_bad
        self.row = row
        self.positions = Positions(self.where)  # of the texts that were yielded last
        with contextlib.ExitStack() as stack:
            try:
                self._source = stack.enter_context(open_for_pyarrow(path))
                self._file = ParquetFile(self._source, buffer_size=1 << 16, pre_buffer=False)
                self._metadata = self._file.metadata
                self.rows: int = self._metadata.num_rows
                self._index = _find_column(path, self._file, column)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise self._damage(error, "not a readable Parquet file") from None
            stack.pop_all()

    def texts(self, waiting: Waiting = contextlib.nullcontext) -> Iterator[list[str | bytes]]:
        """Yield the texts of a few rows at a time; `row` already counts these rows."""
        first = unreleased = 0
        for group in range(self._metadata.num_row_groups):
            size = self._metadata.row_group(group).num_rows
            start, first = max(self.row - first, 0), first + size
            if start >= size:
                continue
            for batch in self._batches(group, start, waiting):
                # A batch may also have a column with a similar path.
                values = batch.column(batch.schema.names.index(self._column))
                values = values.storage if hasattr(values, "storage") else values
                unreleased += values.nbytes
                self._check_sizes(values)
                found = _as_list(values)
                texts = [text for text in found if text is not None]
                holes: list[int] = []
                if len(texts) < len(found):
                    holes = [self.row + i for i, text in enumerate(found) if text is None]
                    self._skip(holes)
                self.positions = Positions(self.where, self.row, holes)
                self.row += len(found)
                del batch, values, found
                if unreleased > _RELEASE:
                    unreleased = 0
                    self._pool.release_unused()
                yield texts

    @cached_property
    def unit_ends(self) -> list[int]:
        """The rows at which units end: at the first row group after each multiple of UNIT bytes of
        text (by the metadata), and at the end of the file.
        """
        found, size, before = [], 0, 0
        for group in range(self._metadata.num_row_groups):
            size += self._metadata.row_group(group).column(self._index).total_uncompressed_size
            if next_multiple(size) > next_multiple(before):
                found.append(self.first_rows[group + 1])
                before = size
        return found if found[-1:] == [self.rows] else [*found, self.rows]

    def group_starts(self) -> list[int]:
        """The byte offset of each row group in the file."""
        found = []
        for group in range(self._metadata.num_row_groups):
            about = self._metadata.row_group(group).column(0)
            offsets = about.dictionary_page_offset, about.data_page_offset
            found.append(min(one for one in offsets if one is not None))
        return found

    def _batches(self, group: int, start: int, waiting: Waiting) -> Iterator[Any]:
        """Yield the rows of a row group from number `start` on, in batches of about _BATCH bytes.

        Raises DocumentError if the file is damaged.
        """

        def next_of(batches: Iterator[Any]) -> Any:
            try:
                with waiting():
                    return next(batches, None)
            except (self._arrow_error, OSError) as error:
                what = f"the Parquet file is damaged after row {self.row}"
                raise self._damage(error, what) from None

        about = self._metadata.row_group(group)
        chunk = about.column(self._index)

        def read(rows: int) -> Iterator[Any]:
            found: Iterator[Any] = self._file.iter_batches(
                rows, row_groups=[group], columns=[self._column], use_threads=False
            )
            return found

        # Measure the first few rows: if the column has a dictionary, the size in the metadata is
        # that of the data before the dictionary is applied.
        size = chunk.total_uncompressed_size // about.num_rows
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
        """The error itself if the system raised it, else a DocumentError with its first line."""
        if getattr(error, "errno", None):
            return error
        return DocumentError(f"{self._path}: {what}: {str(error).partition(chr(10))[0]}")

    def _check_sizes(self, values: Any) -> None:
        """Raise DocumentError if a text in a batch is too long."""
        if values.nbytes > MAX_TEXT:
            sizes = [0 if value is None else value.as_buffer().size for value in values]
            size = max(sizes)
            if size > MAX_TEXT:
                raise DocumentError(
                    f"{self.where(self.row + sizes.index(size))}: the text has {size:,} bytes; a "
                    f"text may have {MAX_TEXT >> 20} MiB"
                )

    def _skip(self, rows: list[int]) -> None:
        """Skip these rows without text, or raise DocumentError for the first of them."""
        for row in rows:
            if self._on_bad is None:
                raise DocumentError(f"{self.where(row)}: no text; --skip-bad-lines skips it")
            group, inside = self._place(row)
            position = {"row_group": group, "row": inside}
            self._on_bad(BadRecord(self._path, position, "no text"))

    def where(self, row: int) -> str:
        """The file, the row group, and the row in the group (both from 0), for messages."""
        group, row = self._place(row)
        return f"{self._path} row group {group} row {row}"

    def _place(self, row: int) -> tuple[int, int]:
        group = bisect.bisect_right(self.first_rows, row) - 1
        return group, row - self.first_rows[group]

    @cached_property
    def first_rows(self) -> list[int]:
        """The number of the first row of each row group, and then the total number of rows."""
        groups = range(self._metadata.num_row_groups)
        sizes = (self._metadata.row_group(group).num_rows for group in groups)
        return list(itertools.accumulate(sizes, initial=0))

    def close(self) -> None:
        self._file.close()
        self._source.close()


def _find_column(path: str, file: Any, column: str) -> int:
    """The index of a column in the metadata. Raises DocumentError unless it holds texts."""
    names = file.schema_arrow.names
    kinds = dict(zip(names, file.schema_arrow.types, strict=True))
    if column not in kinds:
        texts = [name for name in names if _is_text(kinds[name])]
        which = f"the columns of texts are {', '.join(texts)}" if texts else "none has texts"
        raise DocumentError(f"{path}: there is no column {column!r}; {which}")
    if not _is_text(kinds[column]):
        raise DocumentError(
            f"{path}: the column {column!r} holds {kinds[column]}: each row must be one text"
        )
    leaves = (file.metadata.schema.column(i) for i in range(len(file.metadata.schema)))
    # A column "a.b" and the field b of a column a have the same path.
    return next(i for i, one in enumerate(leaves) if one.path == one.name == column)


def _is_text(kind: Any) -> bool:
    kind = getattr(kind, "storage_type", kind)  # of an extension type, such as JSON
    kind = getattr(kind, "value_type", kind) if str(kind).startswith("dictionary") else kind
    return str(kind) in ("string", "large_string", "binary", "large_binary")


def _as_list(values: Any) -> list[str | bytes | None]:
    try:
        found: list[str | bytes | None] = values.to_pylist()
    except UnicodeDecodeError:  # return bytes: the encoder handles invalid UTF-8
        if hasattr(values, "dictionary_decode"):
            values = values.dictionary_decode()
        found = values.cast("large_binary").to_pylist()
    return found
