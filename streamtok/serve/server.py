"""Starts the socket server, admits clients, and stops the server."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..jobs.argument_types import format_host_port
from .connection import CHUNK_SIZE, CLOSING, Client, Format, Shared
from .listening import BACKLOG, open_unix, remove_unix, reserve_descriptors

if TYPE_CHECKING:
    from .._types import AllowedSpecial, DisallowedSpecial
    from ..chunker import StreamEncoder
    from ..encoding import Encoding
    from .counters import Encoded


DEFAULT_PORT = 7654
DEFAULT_MAX_CONNECTIONS = 1000
DEFAULT_MAX_PENDING = 1 << 20
DEFAULT_GRACE = 5.0

_MAX_REFUSING = 64  # clients at a time that are told why they are refused; more are just dropped
_LAST_WORDS = 1.0  # seconds after the grace period for sending last messages


async def serve(
    encoding: Encoding,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    path: str | None = None,
    mode: int = 0o600,
    format: Format = "text",
    max_connections: int = DEFAULT_MAX_CONNECTIONS,
    idle_timeout: float | None = 300.0,
    max_lifetime: float | None = None,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = "all",
    errors: str = "strict",
    max_pending: int = DEFAULT_MAX_PENDING,
) -> Server:
    """Start a server at host and port (0: any free port), or at the Unix socket `path`.

    mode: permissions of the Unix socket; the socket of a dead server is replaced. format: "text" or
    "u32". max_connections: connections at a time; more are refused. idle_timeout: seconds for
    which a client may neither send nor read. max_lifetime: seconds that a connection may last. For
    both, 0 or None means no limit. max_pending: bytes that a stream may hold back. Raises OSError
    if the address cannot be used, UnsupportedPatternError if the encoding cannot be streamed, and
    ValueError for an unknown format.
    """

    def open_stream() -> StreamEncoder:
        return encoding.stream_encoder(
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            max_pending=max_pending,
        )

    open_stream()  # raises now, not at the first connection
    if format not in ("text", "u32"):
        raise ValueError(f"format must be 'text' or 'u32', not {format!r}")
    server = Server(Shared(open_stream, format, idle_timeout, max_lifetime), max_connections)
    await server._listen(host, port, path, mode)
    return server


class Server:
    """A running server, from `serve`. `async with` closes it. `counters` has its totals."""

    def __init__(self, shared: Shared, max_connections: int) -> None:
        self.counters = shared.counters
        self._shared = shared
        self._max_connections = max_connections
        self._clients: set[Client] = set()
        self._all_gone = asyncio.Event()
        self._server: asyncio.Server  # from `_listen`
        self._path: str | None = None
        self._inode: tuple[int, int] | None = None

    @property
    def addresses(self) -> list[str]:
        """HOST:PORT of each TCP socket, or the path of the Unix socket."""
        if self._path is not None:
            return [self._path]
        return [format_host_port(*sock.getsockname()[:2]) for sock in self._server.sockets]

    @property
    def port(self) -> int:
        """The TCP port. Raises ValueError for a Unix socket."""
        if self._path is not None or not self.addresses:
            raise ValueError("the server has no TCP port")
        return int(self.addresses[0].rpartition(":")[2])

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def serve_forever(self) -> None:
        """Serve until cancelled."""
        await asyncio.get_running_loop().create_future()

    async def close(self, grace: float = DEFAULT_GRACE) -> None:
        """Stop accepting, end all connections, and return when they are closed.

        A stream whose client still sends or reads continues for at most `grace` seconds; an idle
        stream ends immediately. Each client gets the ids of all its text so far and an error,
        because the text may be incomplete. Clients that do not read their ids are dropped.
        """
        self._shared.is_closing = True
        if self._path is not None:  # before the system can reuse the inode
            remove_unix(self._path, self._inode)
            self._inode = None
        self._server.close()
        await asyncio.sleep(0)  # so that clients accepted just now are included
        for client in self._clients:
            client.hasten()
        if not await self._is_empty_after(grace):
            for client in self._clients:
                client.end(CLOSING)
            if not await self._is_empty_after(_LAST_WORDS):
                for client in self._clients:
                    client.drop()
                await self._is_empty_after(_LAST_WORDS)

    async def _is_empty_after(self, seconds: float) -> bool:
        if self._clients:
            self._all_gone.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), seconds)
        return not self._clients

    async def _listen(self, host: str, port: int, path: str | None, mode: int) -> None:
        if path is None:
            self._server = await asyncio.start_server(
                self._connected, host or None, port, limit=CHUNK_SIZE, backlog=BACKLOG
            )
        else:
            sock, self._inode = open_unix(path, mode)
            self._path = path
            self._server = await asyncio.start_unix_server(
                self._connected, sock=sock, limit=CHUNK_SIZE, backlog=BACKLOG
            )

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a client, or tell it why it is refused."""
        counters = self.counters
        counters.connections += 1
        client = Client(self._shared, reader, writer)
        self._clients.add(client)
        try:
            if not self._shared.is_closing and counters.connections_open < self._max_connections:
                counters.connections_open += 1
                try:
                    await client.run()
                finally:
                    counters.connections_open -= 1
                return
            counters.connections_refused += 1
            problem = CLOSING
            if not self._shared.is_closing:
                counters.limits_hit["connections"] += 1
                problem = f"there are {self._max_connections} connections already, try later"
            if len(self._clients) - counters.connections_open > _MAX_REFUSING:
                client.drop()
            else:
                await client.refuse(problem)
        finally:
            self._clients.discard(client)
            if not self._clients:
                self._all_gone.set()


def run(
    encoding: Encoding,
    *,
    on_ready: Callable[[str], None] | None = None,
    max_connections: int | None = None,
    grace: float = DEFAULT_GRACE,
    metrics: tuple[str, int] | None = None,
    **settings: Any,
) -> int:
    """Serve until SIGINT or SIGTERM, then close gracefully and return 0.

    A second signal ends the grace period. on_ready: called with each address. max_connections: None
    for 1000, or fewer if the limit of open files requires it; the soft limit is raised if needed.
    grace: seconds; see `Server.close`. metrics: host and port for Prometheus. Other settings and
    exceptions: as for `serve`. Also raises MissingLibraryError if prometheus-client is missing.
    """
    settings["max_connections"] = reserve_descriptors(max_connections, DEFAULT_MAX_CONNECTIONS)
    return asyncio.run(_run(encoding, on_ready, grace, metrics, settings))


@contextlib.contextmanager
def announced(
    addresses: list[str],
    counters: Encoded,
    metrics: tuple[str, int] | None,
    on_ready: Callable[[str], None] | None,
) -> Iterator[None]:
    """Expose the counters inside the block, and call `on_ready` with all addresses; see `run`."""
    with contextlib.ExitStack() as stack:
        if metrics is not None:
            from .metrics import expose

            addresses = [*addresses, stack.enter_context(expose(counters, *metrics))]
        for address in addresses:
            if on_ready is not None:
                on_ready(address)
        yield


async def _run(
    encoding: Encoding,
    on_ready: Callable[[str], None] | None,
    grace: float,
    metrics: tuple[str, int] | None,
    settings: dict[str, Any],
) -> int:
    loop = asyncio.get_running_loop()
    stop, hurry = asyncio.Event(), asyncio.Event()

    def heard() -> None:
        (hurry if stop.is_set() else stop).set()

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # Not on Windows, and not outside the main thread.
        with contextlib.suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(getattr(signal, name), heard)
    server = await serve(encoding, **settings)
    with contextlib.ExitStack() as stack:
        try:
            addresses, counters = server.addresses, server.counters
            stack.enter_context(announced(addresses, counters, metrics, on_ready))
            await stop.wait()
        finally:
            closing = asyncio.ensure_future(server.close(grace))
            hurrying = asyncio.ensure_future(hurry.wait())
            await asyncio.wait({closing, hurrying}, return_when=asyncio.FIRST_COMPLETED)
            if not closing.done():
                await server.close(grace=0.0)
            await closing
            hurrying.cancel()
    return 0
