"""Parsers for argument values: sizes, counts, seconds, addresses, delimiters and permissions.

Each parses the text of one argument, or raises an ArgumentTypeError that says what was expected.
"""

from __future__ import annotations

import contextlib
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping

DEFAULT_HOST = "127.0.0.1"
LONGEST_DELIMITER = 1 << 10  # bytes; bounds the cost of a search per byte of text

_SIZES = {"": 1, "b": 1} | {
    prefix + suffix: 1 << 10 * power
    for power, prefix in enumerate("kmg", 1)
    for suffix in ("", "b", "ib")
}
_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}
_PLAIN = {"": 1}
_LARGEST = 1 << 60  # bytes or ids; a larger number must be a typo
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}
_NUMBER = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))?\s*([a-z]*)")


def _number(
    units: Mapping[str, int], expected: str, least: int = 0, most: int = _LARGEST
) -> Callable[[str], int]:
    """Make a parser for whole numbers from `least` to `most`, with an optional unit."""

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
    """Parse chunk sizes separated by commas."""
    return [parse_chunk_size(part) for part in text.split(",")]


def parse_seconds(text: str) -> float:
    """Parse a finite number of seconds, 0 or more."""
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise _expected(text, "a number of seconds")


def parse_tcp_address(text: str) -> tuple[str, int]:
    """Parse HOST:PORT into host and port.

    An IPv6 host is written in brackets. If the host is empty, it is DEFAULT_HOST.

    >>> parse_tcp_address("localhost:7654"), parse_tcp_address("[::1]:80"), parse_tcp_address(":0")
    (('localhost', 7654), ('::1', 80), ('127.0.0.1', 0))
    """
    host, _, port = text.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 0xFFFF:
        raise _expected(text, "HOST:PORT")
    return host.strip("[]") or DEFAULT_HOST, int(port)


def format_host_port(host: str, port: int) -> str:
    """Format an address for `parse_tcp_address`.

    >>> format_host_port("::1", 80), format_host_port("127.0.0.1", 7654)
    ('[::1]:80', '127.0.0.1:7654')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_hosts(text: str) -> list[str]:
    """Parse host names separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in names):
        raise _expected(text, "names without ports, as in tokens.internal,tokens")
    return names


def parse_delimiter(text: str) -> bytes:
    r"""Parse a delimiter into bytes; \n \r \t \0 \\ and \xHH are escapes.

    >>> parse_delimiter(r"\n---\x1e")
    b'\n---\x1e'
    """

    def replace(found: re.Match[bytes]) -> bytes:
        kind = found[1]
        if len(kind) == 3:
            return bytes([int(kind[1:], 16)])
        if kind not in _ESCAPED:
            shown = kind.decode("latin-1")
            raise ArgumentTypeError(
                rf"{text!r}: unknown escape \{shown}; \xHH has two hexadecimal digits, and \\ is a "
                "backslash"
            )
        return _ESCAPED[kind]

    return _ESCAPE.sub(replace, text.encode("utf-8", "surrogateescape"))


def parse_mode(text: str) -> int:
    """Parse file permissions in octal, such as 660."""
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise _expected(text, "an octal mode such as 660")
    return int(text, 8)


def parse_task(text: str) -> tuple[int, int]:
    """Parse I/N: task I of N, counted from 0."""
    number, slash, count = text.partition("/")
    if slash and number.isdecimal() and count.isdecimal() and int(number) < int(count):
        return int(number), int(count)
    raise _expected(text, "I/N with 0 <= I < N, such as 0/8")


def _expected(text: str, expected: str) -> ArgumentTypeError:
    shown = repr(text if len(text) <= 40 else f"{text[:37]}...")
    return ArgumentTypeError(f"{shown} must be {expected}")
