"""Sinks that write several files: the ids and an index of the documents.

The files are Megatron-LM's `.bin` and `.idx` (megatron/core/datasets/indexed_dataset.py), or
datatrove's `.ds`, `.ds.index` and `.ds.metadata` (datatrove/pipeline/tokens/tokenizer.py). Memory
does not grow with the number of documents.
"""

from __future__ import annotations

import struct

import numpy as np

from ...errors import FormatLimitError
from ...files import PartFile
from .flat import About, Formed, Sink

MEGATRON_MAGIC = b"MMIDIDX\x00\x00"  # the first bytes of an index
MEGATRON_HEADER = 34  # bytes

_BLOCK = 1 << 18  # bytes, a multiple of 8
_MOST_IN_MEGATRON = 2**31 - 1  # a length is an int32


class MegatronSink(Sink):
    """Raw ids, and an index of lengths, pointers and document indices.

    Documents without ids are omitted.

    Lengths are written as documents end, after a header that is rewritten at the end. The pointers
    and the document indices follow once all lengths are written.
    """

    @staticmethod
    def width(about: About) -> int:
        """Bytes per id: Megatron's writer uses uint16 for small vocabularies, else int32."""
        return 2 if about.max_id < 65_499 else 4

    def begin(self) -> None:
        self._files[1].write(self._header(0))

    def _header(self, count: int) -> bytes:
        code = {2: 8, 4: 4}[self.width(self._about)]
        return MEGATRON_MAGIC + struct.pack("<QBQQ", 1, code, count, count + 1)

    def _write_index(self, found: Formed) -> None:
        lengths = np.diff(found.ends, prepend=-self.open)
        lengths = lengths[lengths > 0]
        if not len(lengths):
            return
        if lengths.max() > _MOST_IN_MEGATRON:
            raise FormatLimitError(
                f"a document has {lengths.max()} ids: Megatron's index holds at most "
                f"{_MOST_IN_MEGATRON} for each document"
            )
        self._files[1].write(lengths.astype("<i4").tobytes())

    def finish(self) -> None:
        index = self._files[1]
        assert isinstance(index, PartFile)
        count = (index.size - MEGATRON_HEADER) // 4
        width = self.width(self._about)
        pointer = 0
        for block in index.contents(_BLOCK, MEGATRON_HEADER):
            ends = pointer + np.cumsum(np.frombuffer(block, "<i4"), dtype=np.int64) * width
            index.write(np.concatenate([[pointer], ends[:-1]]).astype("<i8").tobytes())
            pointer = int(ends[-1])
        for start in range(0, count + 1, _BLOCK):
            index.write(np.arange(start, min(start + _BLOCK, count + 1), dtype="<i8").tobytes())
        index.patch(self._header(count))


class DatatroveSink(Sink):
    """Raw ids. The index has a u64 per document: the number of ids up to the document's end."""

    def _write_index(self, found: Formed) -> None:
        if len(found.ends):
            self._files[1].write((found.ends + self.tokens).astype("<u8").tobytes())

    def finish(self) -> None:
        name = f"{self._about.encoding}|{self._about.width}"
        rows = [name, str(self.tokens), metric(self.tokens)]
        self._files[2].write("\n".join(rows).encode())


def metric(count: int) -> str:
    """Format `count` as datatrove does: three digits, a prefix and "T" for tokens ("1.50 MT")."""
    exponent = len(str(count)) - 1
    while True:
        group = min(exponent // 3, 6)
        number = f"{count / 1000**group:.{2 - exponent % 3}f}"
        if float(number) * 1000**group < 10 ** (exponent + 1):
            return f"{number} {('', 'k', 'M', 'G', 'T', 'P', 'E')[group]}T"
        exponent += 1  # rounding up adds a digit: 999 999 is 1.00 M, not 1000 k
