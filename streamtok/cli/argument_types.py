"""Parsers of argument values: sizes, counts, seconds, addresses, delimiters and permissions.

Each takes the text of an argument and raises ArgumentTypeError, which says what was expected.
"""

from __future__ import annotations

import contextlib
import re
from argparse import ArgumentTypeError

from ..pipeline.host_port import parse_host_port
from ..pipeline.sources import unescape

_SIZE_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}
_COUNT_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}
_LARGEST = 1 << 60  # bytes or ids: a larger number is a typing error
_NUMBER = r"([0-9]{1,18})(?:\.([0-9]{1,9}))?\s*"


def parse_size(text: str) -> int:
    """A number of bytes. The units are powers of 1024."""
    found = re.fullmatch(rf"{_NUMBER}(?:([kmg])(?:i?b)?|b)?", text.strip().lower())
    size = _times(found, 1 << _SIZE_UNITS[found[3] or ""]) if found else None
    if size is None:
        raise _expected(text, "a size such as 65536, 64KiB or 1MiB")
    return size


def parse_positive_size(text: str) -> int:
    """A number of bytes, at least 1."""
    size = parse_size(text)
    if not size:
        raise _expected(text, "a positive size such as 65536, 64KiB or 1MiB")
    return size


def parse_chunk_size(text: str) -> int:
    """A number of bytes from 1 to 2**30."""
    size = parse_size(text)
    if not 1 <= size <= 1 << 30:
        raise ArgumentTypeError(f"a chunk must be 1 byte to 1 GiB, not {text}")
    return size


def parse_chunk_sizes(text: str) -> list[int]:
    """Chunk sizes, separated by commas."""
    return [parse_chunk_size(part) for part in text.split(",")]


def parse_positive(text: str) -> int:
    """A number from 1 on, in decimal."""
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise _expected(text, "a positive number")
    return int(text)


def parse_natural(text: str) -> int:
    """A number from 0 on, in decimal."""
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise _expected(text, "a number, 0 or more")
    return int(text)


def parse_count(text: str) -> int:
    """A positive number. The units are powers of 1000."""
    count = _count(text)
    if not count:
        raise _expected(text, "a positive number such as 500000, 32k, 100M or 1G")
    return count


def parse_count_or_0(text: str) -> int:
    """A number from 0 on. The units are powers of 1000."""
    count = _count(text)
    if count is None:
        raise _expected(text, "a number such as 0, 64 or 4k")
    return count


def _count(text: str) -> int | None:
    found = re.fullmatch(rf"{_NUMBER}([kmgb]?)", text.strip().lower())
    return _times(found, _COUNT_UNITS[found[3]]) if found else None


def _times(found: re.Match[str], unit: int) -> int | None:
    """The number that `_NUMBER` has found, in units; None if it is too large or has a rest."""
    places = found[2] or ""
    number, rest = divmod(int(found[1] + places) * unit, 10 ** len(places))
    return None if rest or number > _LARGEST else number


def parse_seconds(text: str) -> float:
    """A finite number of seconds, 0 or more."""
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise _expected(text, "a number of seconds")


def parse_positive_seconds(text: str) -> float:
    """A finite number of seconds, more than 0."""
    seconds = parse_seconds(text)
    if not seconds:
        raise _expected(text, "a number of seconds, more than 0")
    return seconds


def parse_tcp_address(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT."""
    try:
        return parse_host_port(text)
    except ValueError:
        raise _expected(text, "HOST:PORT") from None


def parse_port(text: str) -> int:
    """A port of TCP; 0: any that is free."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 0xFFFF:
        raise _expected(text, "a port, 0 to 65535")
    return int(text)


def parse_delimiter(text: str) -> bytes:
    """The bytes of a delimiter, with escapes."""
    if not text:
        raise ArgumentTypeError("the delimiter is empty; --lines splits at line ends")
    try:
        return unescape(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def parse_mode(text: str) -> int:
    """Permissions in octal, such as 660."""
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise _expected(text, "an octal mode such as 660")
    return int(text, 8)


def parse_task(text: str) -> tuple[int, int]:
    """I/N: number I, from 0 on, of N tasks."""
    number, slash, count = text.partition("/")
    if slash and number.isdecimal() and count.isdecimal() and int(number) < int(count):
        return int(number), int(count)
    raise _expected(text, "I/N with 0 <= I < N, such as 0/8")


def _expected(text: str, expected: str) -> ArgumentTypeError:
    shown = repr(text if len(text) <= 40 else f"{text[:37]}...")
    return ArgumentTypeError(f"{shown} must be {expected}")
