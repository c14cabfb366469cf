"""Just enough of Protocol Buffers' wire format to read and write a SentencePiece model.

A message is a row of fields: a key, `number << 3 | kind`, and a value of a kind that says how long
it is. Every length is checked against what is left, and no message is looked into twice.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ..errors import VocabularyError

__all__ = ["BYTES", "FLOAT", "VARINT", "field", "fields"]

VARINT, FIXED64, BYTES, FLOAT = 0, 1, 2, 5
_NAMES = {VARINT: "varint", FIXED64: "64 bits", BYTES: "bytes", FLOAT: "32 bits"}

Value = int | float | bytes


def fields(data: bytes, start: int, end: int, source: str) -> Iterator[tuple[int, int, Value, int]]:
    """(number, kind, value, place) of each field of the message data[start:end].

    BYTES are given whole, with the place where they begin. VocabularyError where the message ends
    too early, or has a kind that is not in use any more.
    """
    at = start
    while at < end:
        key, after = _varint(data, at, end, source)
        number, kind = key >> 3, key & 7
        if not 1 <= number < 1 << 29:
            raise VocabularyError(f"{source}, byte {at}: a field has the number {number}")
        value: Value
        place = after
        if kind == VARINT:
            value, after = _varint(data, after, end, source)
        elif kind == BYTES:
            size, place = _varint(data, after, end, source)
            after = place + size
            value = data[place : min(after, end)]
        elif kind in (FLOAT, FIXED64):
            after = place + (4 if kind == FLOAT else 8)
            value = data[place : min(after, end)]
            if kind == FLOAT and len(value) == 4:
                value = struct.unpack("<f", value)[0]
        else:
            raise VocabularyError(f"{source}, byte {at}: field {number} is of unknown kind {kind}")
        if after > end:
            raise VocabularyError(
                f"{source}, byte {at}: field {number} has {after - place} bytes, "
                f"but the message ends after {max(end - place, 0)}"
            )
        yield number, kind, value, place
        at = after


def _varint(data: bytes, at: int, end: int, source: str) -> tuple[int, int]:
    value = 0
    for i in range(10):
        if at + i >= end:
            raise VocabularyError(f"{source}, byte {at}: the message ends inside a number")
        byte = data[at + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value & (1 << 64) - 1, at + i + 1
    raise VocabularyError(f"{source}, byte {at}: a number of more than ten bytes")


def expect(kind: int, wanted: int, what: str, source: str, place: int) -> None:
    """VocabularyError unless a field is of the kind that it has in this format."""
    if kind != wanted:
        raise VocabularyError(
            f"{source}, byte {place}: {what} is given as {_NAMES[kind]}, not as {_NAMES[wanted]}"
        )


def field(number: int, value: Value | bool) -> bytes:
    """The bytes of a field: an int as VARINT, a float as FLOAT, bytes as BYTES."""
    if isinstance(value, bytes):
        return _packed(number << 3 | BYTES) + _packed(len(value)) + value
    if isinstance(value, float):
        return _packed(number << 3 | FLOAT) + struct.pack("<f", value)
    return _packed(number << 3 | VARINT) + _packed(value & (1 << 64) - 1)


def _packed(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)
