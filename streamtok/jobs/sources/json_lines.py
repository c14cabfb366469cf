"""Splits JSON lines into documents: a JSON value on each line, with the text in one of its fields.

Lines are parsed whole, so their length is limited. `splitters` handles the other kinds of
documents.
"""

from __future__ import annotations

import codecs
import json
from typing import Any

from ..._core.encode import has_surrogate, text_bytes
from ...errors import DocumentError
from ...files import json_reason
from .records import BadLine, BadRecord, OnBad
from .splitters import BEGINNING, Part, Splitter, Start, together

MAX_LINE = 1 << 26  # bytes
_WHITE_SPACE = " \t\r"  # white space that JSON allows around a value within a line
_parse = json.JSONDecoder().raw_decode  # like json.loads, but does not skip white space


class JsonLines(Splitter):
    """Each line is a JSON value; the text of its document is in one field.

    field: a name, or a path of names and list indices separated by dots. A name that itself
    contains a dot is found only in the outermost object. Lines of white space are ignored.
    """

    unit = "line"

    def __init__(
        self,
        field: str,
        name: str,
        *,
        on_bad: OnBad | None = None,
        max_line: int = MAX_LINE,
        errors: str = "strict",
        start: Start = BEGINNING,
    ):
        """name: the input, for errors. on_bad: called with bad lines; if None, they are errors.

        max_line: the maximum size in bytes; a longer line is an error. errors: the treatment of
        invalid UTF-8 before a line is parsed: "strict" makes it a bad line, "replace" inserts
        U+FFFD, "surrogateescape" keeps the bytes. A JSON escape of a lone surrogate becomes U+FFFD.
        """
        super().__init__(start)
        self._begins_text = start.at == 0
        self._errors = errors
        self._field = field
        self._path = field.split(".")
        self.name = name
        self._on_bad = on_bad
        self._found = 0, 0  # number and offset of the line that was located last in the block
        self._max_line = max_line
        self._rest: list[bytes] = []
        self._size = 0
        self._data = b""  # the lines that are being split

    def split(self, block: bytes) -> list[Part]:
        """Return the parts that the block completes. Raises DocumentError with the line number."""
        self._begin_group()
        end = block.rfind(b"\n") + 1
        if not end:
            self._hold(block)
            return []
        data = b"".join([*self._rest, block[:end]])
        self._rest, self._size = [], 0
        self._data, self._found = data, (self.records + 1, 0)
        texts: list[Any] = []
        try:
            is_fast = len(data) <= self._max_line and self.conversations is None
            lines = data[:-1].decode() if is_fast else None
        except UnicodeDecodeError:
            lines = None
        if lines is not None:
            self._add_fast(texts, lines)
        else:  # perhaps only some of the lines are bad
            for line in data[:-1].split(b"\n"):
                self._add(texts, line)
        self._data = b""
        self._consume(data)
        self._hold(block[end:])
        return together(texts)

    @property
    def is_between(self) -> bool:
        return not self._rest

    def find_end(self, block: bytes) -> int | None:
        return block.find(b"\n") + 1 or None

    def _offset(self) -> int:
        """The offset of the current line. The search begins at the line that was located last."""
        line, at = self._found
        while line < self.records:
            line, at = line + 1, self._data.index(b"\n", at) + 1
        self._found = line, at
        return self.consumed + at

    def _hold(self, data: bytes) -> None:
        if data:
            self._rest.append(data)
            self._size += len(data)
            self._check_size(self._size, self.records + 1)

    def _check_size(self, size: int, line: int) -> None:
        if size > self._max_line:
            raise DocumentError(
                f"{self.where(line)}: more than {self._max_line} bytes; a larger --max-pending "
                "allows it"
            )

    def finish(self) -> list[Part]:
        self._begin_group()
        data = b"".join(self._rest)
        self._rest, self._size = [], 0
        self._found = self.records + 1, 0
        texts: list[Any] = []
        if data:
            self._add(texts, data)
        self._consume(data)
        return together(texts)

    def stop(self) -> list[Part]:
        return []  # an incomplete line is not valid JSON

    def _add_fast(self, texts: list[Any], lines: str) -> None:
        """Do the same as `_add` for each line.

        Objects with a text in the field need fewer calls.
        """
        field = self._field
        for line in lines.split("\n"):
            if line[:1] == "{":
                try:
                    row, end = _parse(line)
                    text = row[field] if field in row else text_field(row, field, self._path)
                except (ValueError, RecursionError):
                    text = None
                if type(text) is str and (end == len(line) or not line[end:].strip(_WHITE_SPACE)):
                    self.records += 1
                    texts.append(self._repaired(text) if "\\u" in line else text)
                    continue
            self._add(texts, line.encode())

    def _add(self, texts: list[Any], line: bytes) -> None:
        self.records += 1
        if self.records == 1 and self._begins_text:
            line = line.removeprefix(codecs.BOM_UTF8)
        if not line or line.isspace():
            self._holes.append(self.records)
            return
        self._check_size(len(line), self.records)
        try:
            texts.append(self._text_of(line))
        except BadLine as why:
            self._holes.append(self.records)
            offset = 0 if self._on_bad is None else self._offset()
            bad = BadRecord(self.name, {"offset": offset}, why.kind, why.detail)
            if self._on_bad is None:
                hint = f"{why.hint}; " if why.hint else ""
                raise DocumentError(
                    f"{self.where(self.records)}: {bad.reason}; {hint}--skip-bad-lines skips it"
                ) from None
            self._on_bad(bad)

    def _text_of(self, line: bytes) -> Any:
        try:
            text = line.decode("utf-8", self._errors)
        except UnicodeDecodeError as error:
            hint = "--errors replace or --errors surrogateescape keeps the line"
            raise BadLine("not UTF-8", f"byte {error.start} ({error.reason})", hint) from None
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            what = f"{json_reason(error)} at character {error.pos}"
            raise BadLine("invalid JSON", what) from None
        except ValueError as error:  # a number with too many digits
            raise BadLine("invalid JSON", str(error).partition(";")[0]) from None
        except RecursionError:
            raise BadLine("JSON that is nested too deeply") from None
        if self.conversations is not None:
            return self.conversations.read(_value(row, self._field, self._path), row)
        return self._repaired(text_field(row, self._field, self._path))

    def _repaired(self, text: str) -> str | bytes:
        is_whole = text.isascii() or not has_surrogate(text, 0, len(text))
        return text if is_whole else text_bytes(text, self._errors)


def text_field(row: Any, field: str, path: list[str]) -> str:
    """The text in `field` of a parsed record, or else at `path`.

    Raises BadLine if there is none.
    """
    value = _value(row, field, path)
    if not isinstance(value, str):
        raise BadLine(f"the field {field!r} holds {_kind(value)}, not a text")
    return value


def _value(row: Any, field: str, path: list[str]) -> Any:
    if isinstance(row, dict) and field in row:
        return row[field]
    value = row
    for name in path:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise BadLine(f"no field {field!r}")
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", dict: "an object", list: "a list"}
    return names.get(type(value), "a number")
