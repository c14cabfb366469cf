"""Serves a page, or a service over HTTP, by uvicorn: on the loopback unless told otherwise.

Anybody on the machine can connect, and the token is asked for only when a request is complete. So
connections that send none are bounded, as in `serve/scrape.py`: in number and in time, and a new
client is always accepted, in the place of the one that has waited longest.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any

from ..errors import MissingLibraryError
from ..pipeline.host_port import format_host_port
from .guard import Application

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ModuleNotFoundError:
    what = "streamtok.view and streamtok serve --http"
    raise MissingLibraryError(what, "uvicorn", "web") from None

_GRACE = 2  # seconds for answers that are under way when the server ends
MAX_CONNECTIONS = 64  # a browser opens six; a service has a number of its own
HEAD_TIMEOUT = 10.0  # seconds in which a request must begin, with all of its headers
# Connections that asyncio accepts before the first of them can be counted. It logs a traceback for
# each one without a descriptor, so there must be fewer than descriptors.
_BACKLOG = 32


class _Connection(H11Protocol):
    """A connection that is dropped if it sends no request, or if others need its place."""

    max_connections = MAX_CONNECTIONS
    waits_since: float | None = None  # for a request; None: one is being answered
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.waits_since = self.loop.time()
        self._timer = self.loop.call_later(HEAD_TIMEOUT, self._look)
        if len(self.connections) > self.max_connections:
            known = [one for one in self.connections if isinstance(one, _Connection)]
            waiting = [(one.waits_since, id(one), one) for one in known if one.waits_since]
            min(waiting)[2].drop()  # this one waits, too

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self.waits_since = None

    def on_response_complete(self) -> None:
        self.waits_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close the connection without an answer."""
        self.connections.discard(self)
        self.transport.abort()

    def _look(self) -> None:
        waited = 0.0 if self.waits_since is None else self.loop.time() - self.waits_since
        if waited >= HEAD_TIMEOUT:
            self.drop()
        else:
            self._timer = self.loop.call_later(HEAD_TIMEOUT - waited, self._look)


class Server:
    """A socket that listens, and the server after it. The socket is there before `run`."""

    def __init__(
        self, app: Application, host: str, port: int, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        """port 0: any that is free. Raises OSError."""
        self._socket = _listen(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            http=type("_Limited", (_Connection,), {"max_connections": max_connections}),
            loop="asyncio",
            backlog=_BACKLOG,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE,
            h11_max_incomplete_event_size=1 << 16,
        )
        self._server = uvicorn.Server(config)

    @property
    def url(self) -> str:
        """str: without the token."""
        return f"http://{format_host_port(self.host, self.port)}/"

    def run(self, on_ready: Callable[[str], None] = lambda url: None) -> None:
        """Serve until `stop`, SIGINT or SIGTERM; a signal is raised again when all is closed."""
        on_ready(self.url)
        with self._socket:
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Let `run` return soon. Any thread may call it."""
        self._server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio switches Nagle's algorithm off: without, each answer may wait
    # 40 ms for an acknowledgement.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()
    except OSError as error:
        made.close()
        where = format_host_port(host, port)
        raise OSError(error.errno, error.strerror or str(error), where) from None
    return made
