"""Splits a stream of bytes into documents: the whole stream is one, or delimiters separate them.

A splitter takes blocks and returns parts. A part is a pair (text, whether the document ends there),
or `Documents`: many whole documents in one buffer, without a Python object for each. Documents of
any length pass through in parts, in bounded memory. Everything before the offset `consumed` has
been returned, so a new splitter can continue from there.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..._core.encode import find_documents
from .records import Positions

if TYPE_CHECKING:
    from .conversations import Conversations

_TOGETHER = 1 << 20  # maximum characters of texts that are joined


class Documents(NamedTuple):
    """Whole documents in one buffer, each followed by the delimiter.

    number: how many there are, with delimiters matched from left to right.
    """

    data: memoryview
    delimiter: bytes
    number: int

    def texts(self) -> list[bytes]:
        """The documents, without their delimiters."""
        return bytes(self.data).split(self.delimiter)[:-1]


Part: TypeAlias = tuple[str | bytes, bool] | Documents


def together(texts: Sequence[str | bytes]) -> list[Part]:
    """Make parts of whole documents: one `Documents` if there are several and they are small."""
    if len(texts) > 1 and sum(map(len, texts)) <= _TOGETHER:
        try:
            joined = "\0".join([*texts, ""])  # type: ignore[list-item]
            if joined.count("\0") == len(texts):
                return [Documents(memoryview(joined.encode()), b"\0", len(texts))]
        except TypeError:  # some are bytes
            pass
    return [(text, True) for text in texts]


class Start(NamedTuple):
    """The position where a splitter begins: bytes, records and CRC-32 of the text before it.

    records: None if they were not counted. is_open: the position is inside a document.
    """

    at: int = 0
    records: int | None = 0
    crc: int = 0
    is_open: bool = False


BEGINNING = Start()


class Splitter:
    """The interface and the counters of a splitter.

    consumed: bytes returned as parts or skipped for good. crc: their CRC-32, if has_crc is set.
    records: lines or documents that have ended since byte `counted_from`. name: the input. unit:
    the word for a record in messages, "" if there is only one. conversations: the chat template, if
    JSON lines hold messages.
    """

    has_crc = True
    conversations: Conversations | None = None
    name = ""
    unit = ""

    def __init__(self, start: Start = BEGINNING):
        self.consumed = start.at
        self.records = start.records or 0
        self.counted_from = start.at if start.records is None else 0
        self.crc = start.crc
        self._first = self.records + 1
        self._holes: list[int] = []

    def where(self, number: int) -> str:
        """The input and the record with this number, for messages."""
        if not self.unit:
            return self.name
        after = f" after byte {self.counted_from}" if self.counted_from else ""
        return f"{self.name} {self.unit} {number}{after}"

    @property
    def positions(self) -> Positions:
        """The records that the documents returned last came from."""
        return Positions(self.where, self._first, self._holes)

    def _begin_group(self) -> None:
        self._first, self._holes = self.records + 1, []

    def _consume(self, data: bytes | memoryview) -> None:
        self.consumed += len(data)
        if self.has_crc:
            self.crc = zlib.crc32(data, self.crc)

    def split(self, block: bytes) -> list[Part]:
        """Return the parts that the block completes."""
        raise NotImplementedError

    @property
    def is_between(self) -> bool:
        """Whether a document has just ended, and no later text can change that."""
        return False

    def find_end(self, block: bytes) -> int | None:
        """The offset in the next block where the delimiter that ends the document ends, or None."""
        return None

    def finish(self) -> list[Part]:
        """Return the parts that the end of the input completes."""
        raise NotImplementedError

    def stop(self) -> list[Part]:
        """Do the same as `finish`, for reading that stops before the end of the input."""
        return self.finish()


class Whole(Splitter):
    """The whole input is one document, or a part of one."""

    def __init__(self, start: Start = BEGINNING, *, ends: bool = True):
        """ends: the document ends with the input."""
        super().__init__(start)
        self._ends = ends

    def split(self, block: bytes) -> list[Part]:
        self._consume(block)
        return [(block, False)]

    def finish(self) -> list[Part]:
        if not self._ends:
            return []
        self.records += 1
        return [(b"", True)]


class Delimited(Splitter):
    """Each delimiter ends a document and is not part of it.

    A delimiter at the very end does not begin another document. Between two consecutive delimiters
    there is an empty document.
    """

    def __init__(self, delimiter: bytes, start: Start = BEGINNING):
        super().__init__(start)
        self._delimiter = delimiter
        self.unit = "line" if delimiter == b"\n" else "document"
        self._rest = b""
        self._is_open = start.is_open

    def split(self, block: bytes) -> list[Part]:
        self._begin_group()
        data = self._rest + block if self._rest else block
        view = memoryview(data)
        parts: list[Part] = []
        begin = 0
        if self._is_open and (end := data.find(self._delimiter)) >= 0:
            parts.append((data[:end], True))
            begin = end + len(self._delimiter)
        count, stop = find_documents(data, self._delimiter, begin, len(data))
        if count:
            parts.append(Documents(view[begin:stop], self._delimiter, count))
        if stop:
            self.records += count + (begin > 0)
            self._is_open = False
        kept, rest = len(data), data[stop:]
        for size in range(min(len(self._delimiter) - 1, len(rest)), 0, -1):
            if rest.endswith(self._delimiter[:size]):  # may begin a delimiter
                kept -= size
                break
        self._rest = data[kept:]
        if kept > stop:
            parts.append((data[stop:kept], False))
            self._is_open = True
        self._consume(view[:kept])
        return parts

    @property
    def is_between(self) -> bool:
        return not self._rest and not self._is_open

    def find_end(self, block: bytes) -> int | None:
        found = (self._rest + block).find(self._delimiter)
        return None if found < 0 else found - len(self._rest) + len(self._delimiter)

    def finish(self) -> list[Part]:
        self._begin_group()
        rest, self._rest = self._rest, b""
        self._consume(rest)
        if not rest and not self._is_open:
            return []
        self.records += 1
        self._is_open = False
        return [(rest, True)]
