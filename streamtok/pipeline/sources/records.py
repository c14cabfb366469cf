"""Documents in a stream of bytes: the whole of it, what is between delimiters, or JSON lines.

A splitter takes blocks and gives parts: (text, whether the document ends there), or `Documents`,
many whole ones in one buffer, so that small ones cost no Python object each. A document of any
length goes through in parts, in bounded memory; only a JSON line is gathered whole. `consumed` is
the position up to which everything has been given out: a new splitter, fed from there, goes on.
"""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from ..._core.encode import find_documents
from ...errors import DocumentError

MAX_LINE = 1 << 26  # bytes of a JSON line
_TOGETHER = 1 << 20  # characters of texts that are joined, at most
_BLANKS = " \t\r"  # what JSON allows around a value, in a line
_parse = json.JSONDecoder().raw_decode  # what json.loads does, without looking for blanks


class Documents(NamedTuple):
    """Whole documents, each with the delimiter behind it.

    data: all of them; number: how many they are, delimiters taken from left to right.
    """

    data: memoryview
    delimiter: bytes
    number: int

    def texts(self) -> list[bytes]:
        """list[bytes]: each document by itself."""
        return bytes(self.data).split(self.delimiter)[:-1]


Part: TypeAlias = tuple[str | bytes, bool] | Documents


def together(texts: Sequence[str | bytes]) -> list[Part]:
    """list of parts: the texts, each a document, as `Documents` if they are small and many."""
    if len(texts) > 1 and sum(map(len, texts)) <= _TOGETHER:
        try:
            joined = "\0".join([*texts, ""])  # type: ignore[list-item]
            if joined.count("\0") == len(texts):
                return [Documents(memoryview(joined.encode()), b"\0", len(texts))]
        except (TypeError, UnicodeEncodeError):  # bytes among them, or a lone surrogate
            pass
    return [(text, True) for text in texts]


class Splitter:
    """The positions of a splitter.

    consumed: bytes given out as parts, or left out for good; crc: their CRC-32, as long as has_crc
    is set; records: lines or documents that have ended; skipped: records left out because they are
    broken.
    """

    has_crc = True

    def __init__(self, consumed: int = 0, records: int = 0, crc: int = 0):
        self.consumed = consumed
        self.records = records
        self.crc = crc
        self.skipped = 0

    def _consume(self, data: bytes | memoryview) -> None:
        self.consumed += len(data)
        if self.has_crc:
            self.crc = zlib.crc32(data, self.crc)

    def leave_out(self, data: bytes) -> None:
        """Count bytes that belong to no document, in front of all others."""
        self._consume(data)

    def split(self, block: bytes) -> list[Part]:
        """list of parts: what the block completes."""
        raise NotImplementedError

    def finish(self) -> list[Part]:
        """list of parts: what the end of the input completes."""
        raise NotImplementedError

    def stop(self) -> list[Part]:
        """list of parts: `finish`, where not the input ends but the reading."""
        return self.finish()


class Whole(Splitter):
    """One document."""

    def split(self, block: bytes) -> list[Part]:
        self._consume(block)
        return [(block, False)]

    def finish(self) -> list[Part]:
        self.records += 1
        return [(b"", True)]


class Delimited(Splitter):
    """What is between delimiters, which belong to no document.

    A delimiter at the very end begins no further document; two in a row have an empty one between
    them.
    """

    def __init__(
        self,
        delimiter: bytes,
        consumed: int = 0,
        records: int = 0,
        crc: int = 0,
        is_open: bool = False,
    ):
        """is_open: the position is inside a document. Raises ValueError for no delimiter."""
        super().__init__(consumed, records, crc)
        if not delimiter:
            raise ValueError("a delimiter has at least one byte")
        self._delimiter = delimiter
        self._rest = b""
        self._is_open = is_open

    def split(self, block: bytes) -> list[Part]:
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
        kept = len(data) - self._held(data[stop:])
        self._rest = data[kept:]
        if kept > stop:
            parts.append((data[stop:kept], False))
            self._is_open = True
        self._consume(view[:kept])
        return parts

    def _held(self, data: bytes) -> int:
        """How many bytes at the end may be the beginning of a delimiter."""
        for size in range(min(len(self._delimiter) - 1, len(data)), 0, -1):
            if data.endswith(self._delimiter[:size]):
                return size
        return 0

    def finish(self) -> list[Part]:
        rest, self._rest = self._rest, b""
        self._consume(rest)
        if not rest and not self._is_open:
            return []
        self.records += 1
        self._is_open = False
        return [(rest, True)]


class JsonLines(Splitter):
    """One JSON value a line, with the text in a field of it.

    field: a name, or names and list indices with dots between; a name that has a dot itself is
    found if it is a field of the outermost object. Lines of blanks are passed over.
    """

    def __init__(
        self,
        field: str,
        name: str,
        *,
        skip_bad: bool = False,
        max_line: int = MAX_LINE,
        errors: str = "strict",
        consumed: int = 0,
        records: int = 0,
        crc: int = 0,
    ):
        """name: of the input, for errors. skip_bad: count broken lines instead of raising.

        errors: what becomes of bytes that are not UTF-8, before the line is parsed: "strict" makes
        it a broken line, "replace" U+FFFD, and with "surrogateescape" the text keeps them.
        """
        super().__init__(consumed, records, crc)
        self._errors = errors
        self._field = field
        self._path = field.split(".")
        self._name = name
        self._skip_bad = skip_bad
        self._max_line = max_line
        self._rest: list[bytes] = []
        self._size = 0
        self._dropped: int | None = None  # bytes of the line that is being left out
        self._dropped_crc = 0

    def split(self, block: bytes) -> list[Part]:
        """list of parts: what the block completes. Raises DocumentError with the line."""
        if self._dropped is not None:
            end = block.find(b"\n") + 1
            self._drop(block[:end] if end else block)
            if not end:
                return []
            self._end_dropped()
            block = block[end:]
        end = block.rfind(b"\n") + 1
        if not end:
            self._hold(block)
            return []
        data = b"".join([*self._rest, block[:end]])
        self._rest, self._size = [], 0
        texts: list[str | bytes] = []
        try:
            lines = data[:-1].decode() if len(data) <= self._max_line else None
        except UnicodeDecodeError:
            lines = None
        if lines is not None:
            self._add_fast(texts, lines)
        else:  # this or that line may still be good
            for line in data[:-1].split(b"\n"):
                self._add(texts, line)
        self._consume(data)
        self._hold(block[end:])
        return together(texts)

    def _hold(self, data: bytes) -> None:
        if data:
            self._rest.append(data)
            self._size += len(data)
            if self._size > self._max_line:
                self._refuse(self.records + 1, self._too_long())
                self._dropped, self._dropped_crc = 0, self.crc
                for held in self._rest:
                    self._drop(held)
                self._rest, self._size = [], 0

    def _drop(self, data: bytes) -> None:
        # `consumed` stays in front of the line until it ends: who goes on from there leaves it out,
        # too, and does not take its rest for a line.
        assert self._dropped is not None
        self._dropped += len(data)
        if self.has_crc:
            self._dropped_crc = zlib.crc32(data, self._dropped_crc)

    def _end_dropped(self) -> None:
        assert self._dropped is not None
        self.consumed += self._dropped
        self.crc = self._dropped_crc
        self._dropped = None
        self.records += 1
        self.skipped += 1

    def _too_long(self) -> str:
        return f" has over {self._max_line} bytes (--max-pending)"

    def _refuse(self, line: int, what: str) -> None:
        """Raise DocumentError unless broken lines are skipped."""
        if not self._skip_bad:
            raise DocumentError(f"{self._name}: line {line}{what}; --skip-bad-lines goes on")

    def finish(self) -> list[Part]:
        if self._dropped is not None:
            self._end_dropped()
        data = b"".join(self._rest)
        self._rest, self._size = [], 0
        texts: list[str | bytes] = []
        if data:
            self._add(texts, data)
        self._consume(data)
        return together(texts)

    def stop(self) -> list[Part]:
        return []  # half a line is no JSON

    def _add_fast(self, texts: list[str | bytes], lines: str) -> None:
        """`_add` each line, with fewer calls where it is an object with a text in the field."""
        field = self._field
        is_lossless = self._errors == "surrogateescape"
        for line in lines.split("\n"):
            if line[:1] == "{" and not (is_lossless and "\\u" in line):
                try:
                    row, end = _parse(line)
                    text = row[field] if field in row else text_field(row, field, self._path)
                except (ValueError, RecursionError):
                    text = None
                if type(text) is str and (end == len(line) or not line[end:].strip(_BLANKS)):
                    self.records += 1
                    texts.append(text)
                    continue
            self._add(texts, line.encode())

    def _add(self, texts: list[str | bytes], line: bytes) -> None:
        self.records += 1
        if self.records == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if not line or line.isspace():
            return
        if len(line) > self._max_line:
            what = self._too_long()
        else:
            try:
                texts.append(self._text_of(line))
                return
            except (ValueError, RecursionError) as error:
                what = f": {error}"
        self._refuse(self.records, what)
        self.skipped += 1

    def _text_of(self, line: bytes) -> str | bytes:
        try:
            text = line.decode("utf-8", self._errors)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"byte {error.start} is not UTF-8; --errors replace or --errors surrogateescape "
                "keeps the line"
            ) from None
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"no JSON: {error.msg} at character {error.pos}") from None
        except RecursionError:
            raise ValueError("no JSON that can be read: it is nested too deeply") from None
        found = text_field(row, self._field, self._path)
        if self._errors != "surrogateescape" or found.isascii():
            return found
        try:
            return found.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise ValueError(
                f"character {error.start} of the text is half of a surrogate pair, which no byte "
                "stands for"
            ) from None


def text_field(row: Any, field: str, path: list[str]) -> str:
    """str: the text that a parsed record has at `path`. Raises ValueError if it has none."""
    value = row
    if isinstance(row, dict) and field in row:
        value = row[field]
    else:
        for name in path:
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                raise ValueError(f"there is no field {field!r}")
    if not isinstance(value, str):
        raise ValueError(f"the field {field!r} holds no text but {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a truth value", dict: "an object", list: "a list"}
    return names.get(type(value), "a number")


def unescape(text: str) -> bytes:
    r"""bytes: a delimiter as it is typed, with \n \r \t \0 \\ and \xHH for what cannot be.

    Raises ValueError for other escapes.

    >>> unescape(r"\n---\x1e")
    b'\n---\x1e'
    """
    simple = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
    made = b""
    parts = iter(text.encode("utf-8", "surrogateescape").decode("latin-1"))
    for one in parts:
        if one != "\\":
            made += one.encode("latin-1")
            continue
        kind = next(parts, "")
        if kind == "x":
            digits = next(parts, "") + next(parts, "")
            try:
                made += bytes.fromhex(digits)
            except ValueError:
                digits = "?"
            if len(digits) != 2:
                raise ValueError(rf"{text!r}: \x needs two hexadecimal digits")
        elif kind in simple:
            made += simple[kind]
        else:
            raise ValueError(rf"{text!r}: there is no escape \{kind}; a backslash is \\")
    return made
