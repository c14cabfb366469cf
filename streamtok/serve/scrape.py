"""The HTTP server of the metrics: one short request for each connection, from untrusted clients.

It must not slow down the service, whoever connects. So it allows a few connections at a time, a few
KB of request and a few seconds for each, and uses no thread. New clients are always accepted: if
there are too many connections, the oldest one is dropped, so that silent clients cannot keep the
others out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

App: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]  # WSGI

MAX_SCRAPES = 8  # connections at a time
MAX_REQUEST = 1 << 14  # bytes of a request line and its headers
TIMEOUT = 5.0  # seconds that a connection may last


class Scrapes:
    """The open connections, oldest first."""

    def __init__(self, app: App):
        self.app = app
        self.connections: dict[Scrape, None] = {}

    def make_protocol(self) -> Scrape:
        return Scrape(self)

    def add(self, scrape: Scrape) -> None:
        """Add a connection, and drop the oldest one if there are too many."""
        self.connections[scrape] = None
        if len(self.connections) > MAX_SCRAPES:
            next(iter(self.connections)).abort()

    def abort(self) -> None:
        """Drop all connections."""
        for scrape in list(self.connections):
            scrape.abort()


class Scrape(asyncio.Protocol):
    """One connection: reads a request and sends the answer."""

    def __init__(self, scrapes: Scrapes):
        self._scrapes = scrapes
        self._request = bytearray()
        self._is_answered = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._timer = asyncio.get_running_loop().call_later(TIMEOUT, self.abort)
        self._scrapes.add(self)

    def data_received(self, data: bytes) -> None:
        if self._is_answered:
            return  # read and discarded, because a reset could lose the answer
        self._request += data[: MAX_REQUEST + 1 - len(self._request)]
        head, end, _ = self._request.replace(b"\r\n", b"\n").partition(b"\n\n")
        if end:
            self._answer(bytes(head))
        elif len(self._request) > MAX_REQUEST:
            self._send("431 Request Header Fields Too Large")

    def connection_lost(self, exc: Exception | None) -> None:
        self._scrapes.connections.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def abort(self) -> None:
        """Drop the client without an answer."""
        self._scrapes.connections.pop(self, None)
        self._transport.abort()

    def _answer(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\n")
        words = first.split()
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            self._send("400 Bad Request")
            return
        method, target, _ = words
        path, _, query = target.partition("?")
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query}
        for line in lines:
            name, _, value = line.partition(":")
            environ["HTTP_" + name.strip().upper().replace("-", "_")] = value.strip()
        status, headers = "500 Internal Server Error", list[tuple[str, str]]()

        def start(given: str, pairs: list[tuple[str, str]]) -> None:
            nonlocal status, headers
            status, headers = given, pairs

        body = b"".join(self._scrapes.app(environ, start))
        self._send(status, headers, body)

    def _send(
        self, status: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b""
    ) -> None:
        self._is_answered = True
        self._request.clear()
        pairs = [*headers, ("Content-Length", str(len(body))), ("Connection", "close")]
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in pairs), "", ""]
        self._transport.write("\r\n".join(lines).encode("latin-1") + body)
        # The client closes when it has the answer; otherwise the timer drops it. Closing while
        # input is unread would reset the connection and could lose the answer.
        self._transport.write_eof()
