"""Reads bytes from TCP and Unix sockets: accepts connections one after another, or makes one.

For many connections at once, use `streamtok serve`. Most commands need no sockets, so the module
for them is imported by who does.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ...files.part_file import named
from ..host_port import DEFAULT_HOST, format_host_port, parse_host_port
from .blocks import BLOCK_SIZE, Waiting, read_descriptor, wait_for

if TYPE_CHECKING:
    import socket


class Address:
    """HOST:PORT, or the path of a Unix socket: any text with a "/" or without a ":".

    >>> Address("localhost:7654").port, Address("/run/feed").path, Address("[::1]:80").host
    (7654, '/run/feed', '::1')
    """

    def __init__(self, text: str):
        """Raises ValueError if `text` is neither."""
        self.text = text
        self.path: str | None = None
        self.host, self.port = DEFAULT_HOST, 0
        if not text:
            raise ValueError("the address is empty: expected HOST:PORT or the path of a socket")
        if "/" in text or ":" not in text:
            self.path = text
            return
        try:
            self.host, self.port = parse_host_port(text)
        except ValueError as error:
            raise ValueError(f"{error} or the path of a socket") from None


def connect(
    address: Address, size: int = BLOCK_SIZE, waiting: Waiting = contextlib.nullcontext
) -> Iterator[bytes]:
    """Connect, and yield what the other side sends until it closes. Raises OSError."""
    import socket

    with named(address.text), waiting():
        if address.path is None:
            link = socket.create_connection((address.host, address.port))
        else:
            link = socket.socket(socket.AF_UNIX)
            try:
                link.connect(address.path)
            except BaseException:
                link.close()
                raise
    with link:
        yield from read_descriptor(link.fileno(), address.text, size, waiting)


class Listener:
    """A listening socket. A Unix one is for its owner only, and `close` removes it.

    The path of a Unix socket must not exist: only a connection could tell whether a process listens
    on an existing one.
    """

    def __init__(self, address: Address, on_ready: Callable[[str], None] | None = None):
        """on_ready: called with the address, in which the real port replaces 0. Raises OSError."""
        import socket

        self.address = address
        with named(address.text):
            if address.path is None:
                family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
                self._socket = socket.create_server((address.host, address.port), family=family)
                host, port = self._socket.getsockname()[:2]
                shown = format_host_port(host, port)
            else:
                self._socket = _bind_path(address.path)
                shown = address.path
        if on_ready is not None:
            on_ready(shown)

    def accept(
        self, size: int = BLOCK_SIZE, waiting: Waiting = contextlib.nullcontext
    ) -> Iterator[bytes]:
        """Wait for a connection, and yield what it sends until it closes. Raises OSError."""
        with named(self.address.text):
            wait_for(self._socket.fileno(), waiting)
            link, _ = self._socket.accept()
        with link:
            yield from read_descriptor(link.fileno(), self.address.text, size, waiting)

    def close(self) -> None:
        """Stop listening. Removes the path of a Unix socket."""
        self._socket.close()
        if self.address.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.address.path)


def _bind_path(path: str) -> socket.socket:
    import socket

    made = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        made.bind(path)
    except BaseException:
        made.close()
        raise
    finally:
        os.umask(before)
    made.listen()
    return made
