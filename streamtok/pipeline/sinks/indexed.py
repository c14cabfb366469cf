"""Sinks that write several files: the ids, and an index of the documents.

Megatron-LM's pair of `.bin` and `.idx` (megatron/core/datasets/indexed_dataset.py) and datatrove's
`.ds`, `.ds.index` and `.ds.metadata` (datatrove/pipeline/tokens/tokenizer.py). Memory does not grow
with the number of documents.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import FormatLimitError
from ...files.part_file import PartFile
from .flat import About, RawSink, Sink, document_lengths

if TYPE_CHECKING:
    from .flat import Ends, IdArray

MEGATRON_MAGIC = b"MMIDIDX\x00\x00"  # the beginning of an index

_BLOCK = 1 << 18  # bytes, a multiple of 8
_MOST_IN_MEGATRON = 2**31 - 1  # a length is an int32


class MegatronSink(Sink):
    """Raw ids; lengths, pointers and documents in the index. Documents without ids are left out.

    The lengths go to a file of their own first, because the index has them before the pointers.
    """

    def __init__(self, files: Sequence[PartFile], about: About, state: dict[str, Any]):
        self._ids, self._index, self._lengths = files
        self._width = self.width(about)
        self._code = {2: 8, 4: 4}[self._width]
        self._raw = RawSink(self._ids, self._width)
        self._open: int = state.get("open", 0)  # ids of the open document

    @staticmethod
    def width(about: About) -> int:
        """Bytes of an id: Megatron's writer uses u16 below this vocabulary size, else int32."""
        return 2 if about.max_id < 65_499 else 4

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        self._raw.write(ids)
        lengths, self._open = document_lengths(len(ids), ends, self._open)
        lengths = lengths[lengths > 0]
        if not len(lengths):
            return
        if lengths.max() > _MOST_IN_MEGATRON:
            raise FormatLimitError(
                f"a document has {lengths.max()} ids: Megatron's index holds at most "
                f"{_MOST_IN_MEGATRON} for each document"
            )
        self._lengths.write(lengths.astype("<i4").tobytes())

    def finish(self) -> None:
        count = self._lengths.size // 4
        index = self._index
        index.write(MEGATRON_MAGIC)
        index.write(struct.pack("<QBQQ", 1, self._code, count, count + 1))
        for block in self._lengths.contents(_BLOCK):
            index.write(block)
        pointer = 0
        for block in self._lengths.contents(_BLOCK):
            ends = pointer + np.cumsum(np.frombuffer(block, "<i4"), dtype=np.int64) * self._width
            index.write(np.concatenate([[pointer], ends[:-1]]).astype("<i8").tobytes())
            pointer = int(ends[-1])
        for start in range(0, count + 1, _BLOCK):
            index.write(np.arange(start, min(start + _BLOCK, count + 1), dtype="<i8").tobytes())

    def getstate(self) -> dict[str, Any]:
        return {"open": self._open}


class DatatroveSink(Sink):
    """Raw ids. The index has a u64 for each document: the number of ids up to its end."""

    def __init__(self, files: Sequence[PartFile], about: About, state: dict[str, Any]):
        self._ids, self._index, self._metadata = files
        self._about = about
        self._raw = RawSink(self._ids, about.width)
        self._tokens: int = state.get("tokens", 0)

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        self._raw.write(ids)
        if len(ends):
            places = np.asarray(ends, np.int64) + self._tokens
            self._index.write(places.astype("<u8").tobytes())
        self._tokens += len(ids)

    def finish(self) -> None:
        name = f"{self._about.encoding}|{self._about.width}"
        rows = [name, str(self._tokens), metric(self._tokens)]
        self._metadata.write("\n".join(rows).encode())

    def getstate(self) -> dict[str, Any]:
        return {"tokens": self._tokens}


def metric(count: int) -> str:
    """`count` as datatrove writes it: three digits, a prefix and "T" for tokens ("1.50 MT")."""
    exponent = len(str(count)) - 1
    while True:
        group = min(exponent // 3, 6)
        number = f"{count / 1000**group:.{2 - exponent % 3}f}"
        if float(number) * 1000**group < 10 ** (exponent + 1):
            return f"{number} {('', 'k', 'M', 'G', 'T', 'P', 'E')[group]}T"
        exponent += 1  # rounding up adds a digit: 999 999 is 1.00 M, not 1000 k
