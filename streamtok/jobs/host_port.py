"""Network addresses as text: HOST:PORT, with an IPv6 host in brackets. No sockets, no lookups."""

from __future__ import annotations

import re

DEFAULT_HOST = "127.0.0.1"


def parse_host_port(text: str) -> tuple[str, int]:
    """The host, DEFAULT_HOST if it is empty, and the port. Raises ValueError.

    >>> parse_host_port("localhost:7654"), parse_host_port("[::1]:80"), parse_host_port(":0")
    (('localhost', 7654), ('::1', 80), ('127.0.0.1', 0))
    """
    host, _, port = text.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise ValueError(f"{text!r} must be HOST:PORT")
    return host.strip("[]") or DEFAULT_HOST, int(port)


def format_host_port(host: str, port: int) -> str:
    """The text that `parse_host_port` reads.

    >>> format_host_port("::1", 80), format_host_port("127.0.0.1", 7654)
    ('[::1]:80', '127.0.0.1:7654')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
