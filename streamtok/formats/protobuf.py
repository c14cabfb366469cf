"""A reader of the Protocol Buffers wire format, just enough for a SentencePiece model.

A message is a sequence of fields. A field is a key, `number << 3 | kind`, and a value; the kind
says how long the value is. Every length is checked against the rest of the message. Parsing is
linear: no message is parsed twice.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import VocabularyError

__all__ = ["BYTES", "FLOAT", "VARINT", "Value", "fields"]

VARINT, FIXED64, BYTES, FLOAT = 0, 1, 2, 5
_NAMES = {VARINT: "varint", FIXED64: "64 bits", BYTES: "bytes", FLOAT: "32 bits"}

Value = int | float | bytes


def fields(
    data: bytes, start: int, end: int, kinds: Mapping[int, int], subject: str, source: str
) -> Iterator[tuple[int, Any, int]]:
    """(number, value, offset of the value) of each field of the message data[start:end].

    kinds: the kinds of the fields to read, by number; other fields are skipped. A value of kind
    BYTES may be a message itself. subject: names the message in errors. Raises VocabularyError
    naming the offset if the message is damaged, or if a field is not of the kind that `kinds`
    gives.
    """
    at = start
    while at < end:
        key, after = data[at], at + 1
        if key >= 0x80:  # rare: most keys and sizes have one byte, and a call for each is slow
            key, after = _varint(data, at, end, source)
        number, kind = key >> 3, key & 7
        if not 1 <= number < 1 << 29:
            raise VocabularyError(f"{source}, byte {at}: {number} is not a valid field number")
        value: Value
        offset = after
        if kind == VARINT:
            value, after = _varint(data, after, end, source)
        elif kind == BYTES:
            size, offset = data[after] if after < end else 0x80, after + 1
            if size >= 0x80:
                size, offset = _varint(data, after, end, source)
            after = offset + size
            value = data[offset : min(after, end)]
        elif kind in (FLOAT, FIXED64):
            after = offset + (4 if kind == FLOAT else 8)
            value = data[offset : min(after, end)]
            if kind == FLOAT and len(value) == 4:
                value = struct.unpack("<f", value)[0]
        else:
            raise VocabularyError(f"{source}, byte {at}: field {number} is of unknown kind {kind}")
        if after > end:
            raise VocabularyError(
                f"{source}, byte {at}: field {number} should have {after - offset} bytes, "
                f"but the message ends after {max(end - offset, 0)}"
            )
        at = after
        if number in kinds:
            if kind != kinds[number]:
                raise VocabularyError(
                    f"{source}, byte {offset}: field {number} of {subject} must be of kind "
                    f"{_NAMES[kinds[number]]}, not {_NAMES[kind]}"
                )
            yield number, value, offset


def _varint(data: bytes, at: int, end: int, source: str) -> tuple[int, int]:
    value = 0
    for i in range(10):
        if at + i >= end:
            raise VocabularyError(f"{source}, byte {at}: the message ends inside a number")
        byte = data[at + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value & (1 << 64) - 1, at + i + 1
    raise VocabularyError(f"{source}, byte {at}: a number has more than ten bytes")
