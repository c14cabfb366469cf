"""Bytes of TCP and Unix sockets: one connection after the other, or one that is made.

For many connections at once there is `streamtok serve`.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator

from .blocks import BLOCK_SIZE, Waiting, read_descriptor, wait_for


class Address:
    """HOST:PORT or the path of a Unix socket, which has a "/" or no port.

    >>> Address("localhost:7654").port, Address("/run/feed").path, Address("[::1]:80").host
    (7654, '/run/feed', '::1')
    """

    def __init__(self, text: str):
        """Raises ValueError for what is neither."""
        host, _, port = text.rpartition(":")
        self.text = text
        self.path: str | None = None
        self.host, self.port = host.strip("[]") or "127.0.0.1", 0
        if "/" in text or ":" not in text:
            if not text:
                raise ValueError("an empty text is no address")
            self.path = text
        elif not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"{text!r} is neither HOST:PORT nor the path of a socket")
        else:
            self.port = int(port)


def connect(
    address: Address, size: int = BLOCK_SIZE, waiting: Waiting = contextlib.nullcontext
) -> Iterator[bytes]:
    """Iterator[bytes]: what the other side sends until it closes. Raises OSError."""
    with _named(address.text), waiting():
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
    """A listening socket. A Unix one may be used by its owner only, and is removed at the end.

    Where a file of its name is, it is refused: nobody could tell without connecting whether a
    process listens there.
    """

    def __init__(self, address: Address, on_ready: Callable[[str], None] | None = None):
        """Raises OSError. on_ready: gets the address, with the port that port 0 became."""
        self.address = address
        with _named(address.text):
            if address.path is None:
                family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
                self._socket = socket.create_server((address.host, address.port), family=family)
                host, port = self._socket.getsockname()[:2]
                shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            else:
                self._socket = _bind_path(address.path)
                shown = address.path
        if on_ready is not None:
            on_ready(shown)

    def accept(
        self, size: int = BLOCK_SIZE, waiting: Waiting = contextlib.nullcontext
    ) -> Iterator[bytes]:
        """Iterator[bytes]: what the next one who connects sends until it closes."""
        with _named(self.address.text):
            wait_for(self._socket.fileno(), waiting)
            link, _ = self._socket.accept()
        with link:
            yield from read_descriptor(link.fileno(), self.address.text, size, waiting)

    def close(self) -> None:
        """Listen no longer."""
        self._socket.close()
        if self.address.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.address.path)


def _bind_path(path: str) -> socket.socket:
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


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), name) from error
