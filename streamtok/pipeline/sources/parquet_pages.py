"""Looks at the header of each page of a Parquet column before pyarrow unpacks the page.

pyarrow takes the memory that a page says it needs: 200 MB for one of 6 KB. The sizes in the file's
footer do not bound that, because they need not be true. So pyarrow reads the file through
`PageGuard`, which follows the headers. They are structs of Thrift's compact protocol
(parquet.thrift in apache/parquet-format; thrift-compact-protocol.md in apache/thrift).
"""

from __future__ import annotations

import io
import os
from typing import Any, NamedTuple

from ...errors import DocumentError

MAX_TEXT = 1 << 26  # bytes of one text, as of a line of JSON lines
MAX_PAGE = 1 << 27  # bytes of a page, unpacked: writers make 1 MiB of it, DuckDB up to 100 MB
_HEADER = 1 << 9  # bytes, of most headers
_MAX_HEADER = 1 << 16  # bytes, with the smallest and the largest value in the page
_DICTIONARY_PAGE = 2
_DELTA_BYTE_ARRAY = 7  # each text begins as the one before it: a page may be any number of times it
_STOP, _TRUE, _FALSE, _BYTE = range(4)
_DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(7, 13)


class Page(NamedTuple):
    """What the header of a page says."""

    end: int  # of the page, in the file
    size: int  # of the page, unpacked
    is_dictionary: bool
    is_delta: bool

    @property
    def most_repeated(self) -> int:
        """The bytes that each row may repeat, however few it takes in the file."""
        if self.is_delta:
            return MAX_PAGE  # later pages may be larger than this one
        return self.size if self.is_dictionary else 0


class PageGuard(io.RawIOBase):
    """A file that raises DocumentError before a page that is too large is read from it."""

    def __init__(self, file: io.RawIOBase, path: str) -> None:
        super().__init__()
        self._file = file
        self._path = path
        self._at = 0
        self._next = self._end = 0  # the next header in the column chunk, and the chunk's end
        self._most_repeated = 0

    def watch(self, start: int, end: int) -> int:
        """Follow the pages of a column chunk, these bytes of the file.

        Returns the bytes that each row may repeat, by the chunk's first page.
        """
        if start < 0:
            raise DocumentError(f"{self._path}: a column begins at byte {start}")
        self._next, self._end = start, end
        self._most_repeated = self._page_at(start).most_repeated if start < end else 0
        return self._most_repeated

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position, as for any file."""
        self._at = self._file.seek(offset, whence)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, once the pages that begin in these bytes are known to be small."""
        target = memoryview(buffer).cast("B")
        self._file.seek(self._at)
        done = 0
        while done < len(target):
            size = self._file.readinto(target[done:])
            if not size:
                break
            done += size
        start, self._at = self._at, self._at + done
        while start <= self._next < min(self._end, self._at):
            page = self._page_at(self._next, target[self._next - start : done])
            if page.most_repeated > self._most_repeated:
                raise DocumentError(
                    f"{self._path}: the page at byte {self._next} has another encoding than the "
                    "first page of its column"
                )
            self._next = page.end
        return done

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()

    def _page_at(self, at: int, known: memoryview | bytes = b"") -> Page:
        """The page that begins there. Raises DocumentError if it is damaged or too large.

        known: some bytes of the file from there on.
        """
        header = _Header(bytes(known[:_HEADER]))
        try:
            fields = header.struct()
        except (IndexError, RecursionError):
            self._file.seek(at)
            header = _Header(self._file.read(_MAX_HEADER) or b"")
            try:
                fields = header.struct()
            except (IndexError, RecursionError):
                fields = {}
        kind, size, packed = (fields.get(number) for number in (1, 2, 3))
        if not isinstance(size, int) or not isinstance(packed, int) or min(size, packed) < 0:
            raise DocumentError(f"{self._path}: the header of the page at byte {at} is damaged")
        if size > (MAX_TEXT if kind == _DICTIONARY_PAGE else MAX_PAGE):
            raise DocumentError(
                f"{self._path}: the page at byte {at} has {size:,} bytes, unpacked; a text may "
                f"have {MAX_TEXT >> 20} MiB, and a page of texts {MAX_PAGE >> 20} MiB"
            )
        is_delta = any(
            isinstance(fields.get(number), dict) and fields[number].get(place) == _DELTA_BYTE_ARRAY
            for number, place in ((5, 2), (8, 4))
        )
        return Page(at + header.at + packed, size, kind == _DICTIONARY_PAGE, is_delta)


class _Header:
    """A struct of Thrift's compact protocol: its numbers by field, and where it ends."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self) -> dict[int, Any]:
        """Numbers and structs by the numbers of their fields; all else is left out."""
        found: dict[int, Any] = {}
        number = 0
        while self.at <= len(self._data):
            head = self._byte()
            kind = head & 15
            if kind == _STOP:
                return found
            number = number + (head >> 4) if head >> 4 else self._number()
            found[number] = self._value(kind)
        raise IndexError(self.at)

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return None
        if kind in (_BYTE, _DOUBLE):
            self.at += 1 if kind == _BYTE else 8
        elif kind == _BINARY:
            size = self._varint()
            self.at += size
        elif kind in (_LIST, _SET):
            head = self._byte()
            for _ in range(head >> 4 if head >> 4 < 15 else self._varint()):
                self._item(head & 15)
        elif kind == _MAP:
            size = self._varint()
            kinds = self._byte() if size else 0
            for _ in range(size):
                self._item(kinds >> 4)
                self._item(kinds & 15)
        elif kind == _STRUCT:
            return self.struct()
        else:
            return self._number()
        return None

    def _item(self, kind: int) -> None:
        """An item of a list: as a value, but a truth value has a byte."""
        if self.at > len(self._data):
            raise IndexError(self.at)
        self._value(_BYTE if kind in (_TRUE, _FALSE) else kind)

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
