"""Writes Parquet files of ids through pyarrow: one row per document, or several for a long one.

A Parquet file ends with a footer that describes all of it, so one process cannot continue the
unfinished file of another. The ids and the lengths of the documents are therefore written to plain
files first. When these are complete, they are converted to the table, in blocks.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...files import PartFile
from ..optional_pyarrow import load_pyarrow
from .flat import Formed, Sink

METADATA = b"streamtok"  # the key in the schema's metadata
ROW_TOKENS = 1 << 17  # ids per row; a longer document has several rows
# Limits of a row group, which is held in memory. Each group leaves 5 KB in memory until the end.
_BLOCK_TOKENS = 1 << 18
_BLOCK_ROWS = 1 << 15
_PAGE = 1 << 16


class ParquetSink(Sink):
    """A table whose rows are documents, or parts of long documents.

    The columns are `document` (int64, the document's number in the run), `part` (int32) and
    `input_ids` (list of uint32).

    `part` numbers the rows of a document from 0: a row has at most ROW_TOKENS ids. The schema's
    metadata names the encoding, as JSON under the key "streamtok". The files are the table and two
    temporary ones: the ids (little-endian uint32) and the lengths of the documents (int64).
    """

    ids_at = 1

    def begin(self) -> None:
        load_pyarrow()

    def _write_index(self, found: Formed) -> None:
        if len(found.ends):
            lengths = np.diff(found.ends, prepend=-self.open)
            self._files[2].write(lengths.astype("<i8").tobytes())

    def finish(self) -> None:
        pa = load_pyarrow()
        table, ids_file, lengths_file = self._files
        assert isinstance(table, PartFile)
        assert isinstance(ids_file, PartFile)
        assert isinstance(lengths_file, PartFile)
        for file in (ids_file, lengths_file):
            file.wait()
        from pyarrow.parquet import ParquetWriter

        fields = [("document", pa.int64()), ("part", pa.int32())]
        about = self._about
        row = {
            "encoding": about.encoding,
            "vocabulary_sha256": about.digest,
            "documents": lengths_file.size // 8,
            "first_document": self._first,
            "tokens": ids_file.size // 4,
        }
        schema = pa.schema(
            [*fields, ("input_ids", pa.list_(pa.uint32()))],
            metadata={METADATA: json.dumps(row).encode()},
        )
        target = pa.PythonFile(_Writable(table), mode="w")
        writer = ParquetWriter(
            target,
            schema,
            version="2.6",
            data_page_version="1.0",
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            data_page_size=_PAGE,
        )
        with contextlib.closing(writer), ids_file.reopened() as ids:
            for documents, parts, lengths in self._groups(lengths_file):
                offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
                values = pa.array(np.fromfile(ids, "<u4", int(offsets[-1])))
                rows = pa.ListArray.from_arrays(pa.array(offsets), values)
                columns = [pa.array(documents), pa.array(parts), rows]
                # Not write_batch, which would hold a row group of many batches in memory.
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))
                del values, rows, columns
                pa.default_memory_pool().release_unused()
        target.close()

    def _groups(self, lengths_file: PartFile) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (document numbers, parts, lengths) of the rows of each row group."""
        document = self._first
        for block in lengths_file.contents(8 * _BLOCK_ROWS):
            whole = np.frombuffer(block, "<i8")
            rows = np.maximum(1, -(-whole // ROW_TOKENS))
            documents = np.repeat(np.arange(document, document + len(whole)), rows)
            parts = np.arange(len(documents)) - np.repeat(np.cumsum(rows) - rows, rows)
            lengths = np.minimum(whole[documents - document] - parts * ROW_TOKENS, ROW_TOKENS)
            document += len(whole)
            start = 0
            while start < len(lengths):
                sizes = np.cumsum(lengths[start:])
                stop = start + max(1, int(np.searchsorted(sizes, _BLOCK_TOKENS, "right")))
                yield documents[start:stop], parts[start:stop].astype(np.int32), lengths[start:stop]
                start = stop


class _Writable:
    """Adapts a PartFile to the file object that pyarrow writes to."""

    closed = False

    def __init__(self, file: PartFile):
        self._file = file

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._file.write(view)
        self._file.wait()  # pyarrow reuses the memory afterwards
        return view.nbytes

    def tell(self) -> int:
        return self._file.size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
