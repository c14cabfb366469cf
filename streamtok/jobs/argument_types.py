"""Parsers of argument values: sizes, counts, seconds, addresses, delimiters and permissions.

Each takes the text of an argument and raises ArgumentTypeError, which says what was expected.
"""

from __future__ import annotations

import contextlib
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping

from .host_port import parse_host_port

_SIZES = {"": 1, "b": 1} | {
    prefix + suffix: 1 << 10 * power
    for power, prefix in enumerate("kmg", 1)
    for suffix in ("", "b", "ib")
}
_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}
_PLAIN = {"": 1}
_LARGEST = 1 << 60  # bytes or ids: a larger number is a typing error
_NUMBER = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))?\s*([a-z]*)")


def _number(
    units: Mapping[str, int], expected: str, least: int = 0, most: int = _LARGEST
) -> Callable[[str], int]:
    """A parser of whole numbers, perhaps with a unit, from `least` to `most`."""

    def parse(text: str) -> int:
        found = _NUMBER.fullmatch(text.strip().lower())
        if found and found[3] in units:
            places = found[2] or ""
            scale: int = 10 ** len(places)
            number, rest = divmod(int(found[1] + places) * units[found[3]], scale)
            if not rest and least <= number <= most:
                return number
        raise _expected(text, expected)

    return parse


parse_size = _number(_SIZES, "a size such as 65536, 64KiB or 1MiB")
parse_positive_size = _number(_SIZES, "a positive size such as 65536, 64KiB or 1MiB", 1)
parse_chunk_size = _number(_SIZES, "a size from 1 byte to 1 GiB", 1, 1 << 30)
parse_count = _number(_COUNTS, "a positive number such as 500000, 32k, 100M or 1G", 1)
parse_count_or_0 = _number(_COUNTS, "a number such as 0, 64 or 4k")
parse_positive = _number(_PLAIN, "a positive number", 1)
parse_natural = _number(_PLAIN, "a number, 0 or more")
parse_port = _number(_PLAIN, "a port, 0 to 65535", 0, 0xFFFF)


def parse_chunk_sizes(text: str) -> list[int]:
    """Chunk sizes, separated by commas."""
    return [parse_chunk_size(part) for part in text.split(",")]


def parse_seconds(text: str) -> float:
    """A finite number of seconds, 0 or more."""
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise _expected(text, "a number of seconds")


def parse_tcp_address(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT."""
    try:
        return parse_host_port(text)
    except ValueError:
        raise _expected(text, "HOST:PORT") from None


def parse_hosts(text: str) -> list[str]:
    """Names of hosts, with commas between them."""
    names = [name.strip() for name in text.split(",")]
    if not all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in names):
        raise _expected(text, "names without ports, as in tokens.internal,tokens")
    return names


def parse_delimiter(text: str) -> bytes:
    """The bytes of a delimiter, with escapes."""
    if not text:
        raise ArgumentTypeError("the delimiter is empty; --lines splits at line ends")
    from .sources.splitters import LONGEST_DELIMITER, unescape

    try:
        delimiter = unescape(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    if len(delimiter) > LONGEST_DELIMITER:
        raise ArgumentTypeError(
            f"a delimiter has at most {LONGEST_DELIMITER} bytes, this one has {len(delimiter)}"
        )
    return delimiter


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
