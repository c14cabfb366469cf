"""Splits JSON lines into documents: a JSON value on each line, with the text in one of its fields.

Lines are parsed whole, so their length is limited. Other documents are in `splitters`.
"""

from __future__ import annotations

import codecs
import json
import zlib
from typing import Any

from ...errors import DocumentError
from .replaced_bytes import count_replaced
from .splitters import Part, Splitter, together

MAX_LINE = 1 << 26  # bytes
_BLANKS = " \t\r"  # what JSON allows around a value, within a line
_parse = json.JSONDecoder().raw_decode  # as json.loads, but it does not skip blanks


class JsonLines(Splitter):
    """Each line is a JSON value; the text of its document is in one field.

    field: a name, or a path of names and list indices with dots between them. A name with a dot of
    its own is found in the outermost object only. Blank lines are ignored.
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
        """name: the input, for errors. skip_bad: count broken lines instead of raising.

        max_line: bytes; a longer line is broken. errors: for bytes that are not UTF-8, before the
        line is parsed: "strict" makes the line a broken one, "replace" makes them U+FFFD,
        "surrogateescape" keeps them in the text.
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
        self._dropped: int | None = None  # bytes so far of a line that is being skipped
        self._dropped_crc = 0

    def split(self, block: bytes) -> list[Part]:
        """The parts that the block completes. Raises DocumentError with the line number."""
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
        else:  # some of the lines may still be good
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
        # `consumed` stays before the line until the line ends, so that a process that continues
        # from there skips the whole line, too.
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
        return f" has more than {self._max_line} bytes (--max-pending)"

    def _refuse(self, line: int, what: str) -> None:
        """Raise DocumentError unless broken lines are skipped."""
        if not self._skip_bad:
            raise DocumentError(f"{self._name}: line {line}{what}; --skip-bad-lines skips it")

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
        return []  # an incomplete line is not JSON

    def _add_fast(self, texts: list[str | bytes], lines: str) -> None:
        """`_add` each line, with fewer calls for objects that have a text in the field."""
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
                if self._errors == "replace":
                    self.replaced += count_replaced(line)
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
            raise ValueError(f"invalid JSON: {error.msg} at character {error.pos}") from None
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None
        found = text_field(row, self._field, self._path)
        if self._errors != "surrogateescape" or found.isascii():
            return found
        try:
            return found.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise ValueError(
                f"character {error.start} of the text is half of a surrogate pair, which has no "
                "UTF-8 bytes"
            ) from None


def text_field(row: Any, field: str, path: list[str]) -> str:
    """The text in `field` of a parsed record, or else at `path`. Raises ValueError if none is."""
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
        raise ValueError(f"the field {field!r} holds {_kind(value)}: expected a text")
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", dict: "an object", list: "a list"}
    return names.get(type(value), "a number")
