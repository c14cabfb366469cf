"""Serves the page, or a service over HTTP, with uvicorn.

Every user of the machine can connect, and the token is checked only when a request is complete. So
connections are limited in number and in time. A new client is always accepted: if there are too
many, the connection that has waited longest for a request is dropped. Two kinds of requests that
uvicorn and h11 accept are refused here: those with very long headers that arrive at once, and those
that have both Transfer-Encoding and Content-Length.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..jobs.argument_types import format_host_port
from .guard import Application, Receive, Scope, Send, refusal

GRACE = 2.0  # seconds to finish open answers when the server stops
MAX_CONNECTIONS = 64  # a browser opens six; services set a limit of their own
HEAD_TIMEOUT = 10.0  # seconds in which the whole head of a request must arrive
IDLE_TIMEOUT = 60.0  # seconds until a client that neither reads nor sends is dropped
_MAX_HEAD = 1 << 16  # bytes of a request line and its headers
_NEVER = 1 << 30  # seconds
_TICKS = 4  # checks within the shortest time limit
# asyncio accepts this many connections before the first of them can be counted. It logs a traceback
# for each connection that gets no file descriptor, so more descriptors than these must be free.
_BACKLOG = 32


class _Connection(H11Protocol):
    """A connection that is dropped at a time limit, or when a new one needs its slot."""

    max_connections: int
    idle_timeout: float
    max_lifetime: float
    idle_since: float | None = None  # start of the wait for a request; None while answering one
    _timer: asyncio.TimerHandle | None = None
    _has_answered = False
    _unsent = 0  # bytes of output at the last tick
    _read_at = 0.0  # when the client last read bytes of its answer

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._opened = self.idle_since = self.loop.time()
        self._period = min(HEAD_TIMEOUT, self.idle_timeout, self.max_lifetime) / _TICKS
        self._tick()
        if len(self.connections) > self.max_connections:
            known = [one for one in self.connections if isinstance(one, _Connection)]
            waiting = [(one.idle_since, id(one), one) for one in known if one.idle_since]
            min(waiting)[2].drop()  # there is at least one: `self`

    def data_received(self, data: bytes) -> None:
        has_begun = self.idle_since is not None and bool(self.conn.trailing_data[0])
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self.idle_since = None
        elif self.idle_since is not None and not has_begun and self._has_answered:
            self.idle_since = self.loop.time()  # the rest of the head must arrive in HEAD_TIMEOUT

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        self._has_answered = True
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close the connection without an answer."""
        self.connections.discard(self)
        self.transport.abort()

    def _tick(self) -> None:
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self._read_at = now
        self._unsent = unsent
        if self._is_over(now):
            self.drop()
        else:
            self._timer = self.loop.call_later(self._period, self._tick)

    def _is_over(self, now: float) -> bool:
        if now - self._opened >= self.max_lifetime:
            return True
        if self._unsent:
            return now - self._read_at >= self.idle_timeout
        if self.idle_since is None:
            return False  # the application limits how long a body takes
        is_between = self._has_answered and not self.conn.trailing_data[0]
        limit = self.idle_timeout if is_between else HEAD_TIMEOUT
        return now - self.idle_since >= limit


def _checked(app: Application) -> Application:
    """The application, preceded by the checks that all servers here make."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope.get("headers", ())
        size = len(scope.get("raw_path", b"")) + len(scope.get("query_string", b""))
        names = {name for name, _ in headers}
        if size + sum(len(name) + len(value) + 4 for name, value in headers) > _MAX_HEAD:
            answer: Application = refusal(
                431, f"the headers of a request may have at most {_MAX_HEAD:,} bytes"
            )
        elif {b"transfer-encoding", b"content-length"} <= names:
            # A proxy may use the other header to find the end of the request.
            answer = refusal(
                400, "a request must not have both Transfer-Encoding and Content-Length"
            )
        else:
            answer = app
        await answer(scope, receive, send)

    return checked


class Server:
    """A server for an ASGI application. It listens from the start, and answers during `run`."""

    def __init__(
        self,
        app: Application,
        host: str,
        port: int,
        *,
        max_connections: int = MAX_CONNECTIONS,
        idle_timeout: float | None = IDLE_TIMEOUT,
        max_lifetime: float | None = None,
        grace: float = GRACE,
    ) -> None:
        """port: 0 for any free port. idle_timeout, max_lifetime: seconds; 0 or None for no limit.
        grace: seconds to finish open answers when the server stops. Raises OSError.
        """
        self._socket = _listen(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        limits = {
            "max_connections": max_connections,
            "idle_timeout": idle_timeout or math.inf,
            "max_lifetime": max_lifetime or math.inf,
        }
        config = uvicorn.Config(
            _checked(app),
            http=type("_Limited", (_Connection,), limits),
            loop="asyncio",
            backlog=_BACKLOG,
            log_config=None,
            log_level=logging.ERROR,  # clients could cause warnings at will
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_NEVER,  # connections have their own timers
            timeout_graceful_shutdown=cast(Any, grace),  # declared as int
            h11_max_incomplete_event_size=_MAX_HEAD,
        )
        self._server = uvicorn.Server(config)

    @property
    def url(self) -> str:
        """str: the URL of the page, without the token."""
        return f"http://{format_host_port(self.host, self.port)}/"

    def run(self) -> None:
        """Serve until `stop`, SIGINT or SIGTERM. A signal is raised again after closing."""
        with self._socket:
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Make `run` return soon. Any thread may call it."""
        self._server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio otherwise leaves Nagle's algorithm on, with which each
    # answer may wait 40 ms for an acknowledgement.
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
