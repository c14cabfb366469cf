"""A socket door: each connection is a stream of its own; text goes in, ids come out.

A client sends UTF-8 bytes and closes its sending side; the ids come as they become certain, in
decimal, one a line (`text`), or as little-endian u32. After the last id the server closes. What
goes wrong is told in the same channel, since ids that stop early would look complete: in text a
last line `error: …`, in u32 the word 0xFFFFFFFF, which is no id, and then the message.

>>> async with await serve(enc, host="127.0.0.1", port=0) as server:
...     await server.serve_forever()
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from .errors import StreamtokError
from .sinks import format_text

if TYPE_CHECKING:
    from .chunker import StreamEncoder
    from .encoding import AllowedSpecial, DisallowedSpecial, Encoding, IdArray

    Format: TypeAlias = Literal["text", "u32"]

DEFAULT_PORT = 7654
DEFAULT_MAX_PENDING = 1 << 20
ERROR_MARK = b"\xff\xff\xff\xff"  # in u32 output: a message follows

_CHUNK_SIZE = 1 << 16
_THREAD_SIZE = 1 << 14  # encoding less is over before a thread has begun
_LAST_CALL = 0.1  # seconds that a closing server waits for input that is on its way
_LINGER = 2.0  # seconds in which a client may read why it is refused


async def serve(
    encoding: Encoding,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    path: str | None = None,
    format: Format = "text",
    max_connections: int = 64,
    idle_timeout: float | None = 300.0,
    allowed_special: AllowedSpecial = frozenset(),
    disallowed_special: DisallowedSpecial = "all",
    errors: str = "strict",
    max_pending: int = DEFAULT_MAX_PENDING,
) -> Server:
    """Server: listening on host and port (0: any free one), or on the Unix socket `path`.

    idle_timeout: seconds that a client may neither send nor read; 0 or None: for ever. A Unix
    socket has mode 0600; one that a dead server left is replaced. Raises OSError if the address
    cannot be had, UnsupportedPatternError for an encoding that cannot be streamed.
    """

    def open_stream() -> StreamEncoder:
        return encoding.stream_encoder(
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            max_pending=max_pending,
        )

    open_stream()  # settings that no connection could use are refused here
    server = Server(open_stream, format, max_connections, idle_timeout or None)
    if path is None:
        await server._listen_tcp(host, port)
    else:
        await server._listen_unix(path)
    return server


class Server:
    """Made by `serve`. `async with` closes it."""

    def __init__(
        self,
        open_stream: Callable[[], StreamEncoder],
        format: Format,
        max_connections: int,
        idle_timeout: float | None,
    ):
        if format not in ("text", "u32"):
            raise ValueError(f"format is text or u32, not {format!r}")
        self._open_stream = open_stream
        self._format = format
        self._max_connections = max_connections
        self._idle_timeout = idle_timeout
        self._connections: set[asyncio.Task[None]] = set()
        self._reads: set[asyncio.Task[bytes]] = set()
        self._active = 0
        self._is_closing = False
        self._server: asyncio.Server | None = None
        self._path: str | None = None
        self._inode: tuple[int, int] | None = None

    @property
    def addresses(self) -> list[str]:
        """list[str]: HOST:PORT of each socket, or the path."""
        if self._path is not None:
            return [self._path]
        names = [s.getsockname() for s in self._server.sockets] if self._server else []
        return [f"[{n[0]}]:{n[1]}" if ":" in n[0] else f"{n[0]}:{n[1]}" for n in names]

    @property
    def port(self) -> int:
        """int: the TCP port."""
        if self._server is None or self._path is not None or not self._server.sockets:
            raise ValueError("the server has no TCP port")
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def serve_forever(self) -> None:
        """Serve until cancelled."""
        await asyncio.get_running_loop().create_future()

    async def close(self, grace: float = 5.0) -> None:
        """Take no more connections, end those there are, and return when all are closed.

        A stream whose client still sends goes on for at most `grace` seconds; one that waits for
        its client is told at once. Either gets the ids that are certain and an error, since its
        text may not have ended.
        """
        self._is_closing = True
        if self._server is not None:
            self._server.close()
        self._remove_socket()
        for read in self._reads:
            read.cancel()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    # Listening

    async def _listen_tcp(self, host: str, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, host, port, limit=_CHUNK_SIZE)

    async def _listen_unix(self, path: str) -> None:
        _remove_stale(path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            try:
                sock.bind(path)
            except OSError as error:
                # A path too long for a socket has no errno.
                code = error.errno or errno.ENAMETOOLONG
                raise OSError(code, os.strerror(code), path) from None
            # Before it listens: until then nobody can connect, whatever the umask is.
            os.chmod(path, 0o600)
            found = os.stat(path)
            self._path, self._inode = path, (found.st_dev, found.st_ino)
            self._server = await asyncio.start_unix_server(
                self._accept, sock=sock, limit=_CHUNK_SIZE
            )
        except BaseException:
            sock.close()
            self._remove_socket()
            raise

    def _remove_socket(self) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError):
                found = os.stat(self._path)
                if (found.st_dev, found.st_ino) == self._inode:  # not that of a successor
                    os.unlink(self._path)
            self._inode = None

    # Connections

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: those that asyncio makes log what the cancelled ones raise.
        task = asyncio.get_running_loop().create_task(self._connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_counted = self._active < self._max_connections
        self._active += is_counted
        try:
            if is_counted:
                problem = await self._stream(reader, writer)
            else:
                problem = f"there are {self._max_connections} connections already, try later"
            if problem:
                await self._refuse(reader, writer, problem)
        except (ConnectionError, TimeoutError, asyncio.TimeoutError):
            writer.transport.abort()  # the client has gone, or does not read
        except asyncio.CancelledError:
            # Closing, and the grace is over: tell the client if its buffer has room.
            with contextlib.suppress(Exception):
                writer.write(self._error(self._closing_text()))
        finally:
            self._active -= is_counted
            writer.close()
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await asyncio.wait_for(writer.wait_closed(), _LINGER)
            writer.transport.abort()

    async def _stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str | None:
        """Encode one connection. str: what ended it too early; None: the client did."""
        stream = self._open_stream()
        while True:
            try:
                data = await self._read(reader)
            except TimeoutError:
                if self._is_closing:
                    return self._closing_text()
                return f"nothing has come for {self._idle_timeout:g} seconds"
            try:
                if len(data) < _THREAD_SIZE:
                    ids = stream.encode_to_numpy(data, final=not data)
                else:  # other connections go on meanwhile, and other cores take part
                    ids = await asyncio.to_thread(stream.encode_to_numpy, data)
            except UnicodeDecodeError as error:
                return f"byte {error.start} is not UTF-8 ({error.reason})"
            except (StreamtokError, ValueError) as error:
                return str(error).partition("\n")[0].rstrip(".")
            if len(ids):
                writer.write(self._bytes(ids))
                # Nothing more is read until the client has taken most of this.
                await asyncio.wait_for(writer.drain(), self._idle_timeout)
            if not data:
                return None

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        """bytes: what has come; b"": the client has ended. Raises TimeoutError."""
        while True:
            timeout = _LAST_CALL if self._is_closing else self._idle_timeout
            read = asyncio.ensure_future(reader.read(_CHUNK_SIZE))
            self._reads.add(read)
            try:
                await asyncio.wait({read}, timeout=timeout)
                if read.done() and not read.cancelled():
                    return read.result()
                if not read.cancelled():
                    raise TimeoutError
                # close() wakes us: once more, for what is on its way.
            finally:
                self._reads.discard(read)
                read.cancel()

    async def _refuse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, problem: str
    ) -> None:
        writer.write(self._error(problem))
        await asyncio.wait_for(writer.drain(), self._idle_timeout)
        with contextlib.suppress(OSError, asyncio.TimeoutError, TimeoutError):
            writer.write_eof()
            # Closing while input is unread would reset the connection, and the client might never
            # see the message: take what it still sends, for a while.
            await asyncio.wait_for(_discard(reader), 0.0 if self._is_closing else _LINGER)

    def _bytes(self, ids: IdArray) -> bytes:
        if self._format == "text":
            return format_text(ids)
        return ids.astype(np.dtype("<u4"), copy=False).tobytes()

    def _error(self, problem: str) -> bytes:
        if self._format == "text":
            return f"error: {problem}\n".encode()
        return ERROR_MARK + problem.encode()

    @staticmethod
    def _closing_text() -> str:
        return "the server is shutting down before the text has ended"


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(_CHUNK_SIZE):
        pass


def _remove_stale(path: str) -> None:
    """Remove the socket of a server that is dead. Raises OSError if something else is there."""
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise FileExistsError(errno.EEXIST, "exists and is no socket", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError as error:  # too busy to answer, or not ours to ask
            code = error.errno or errno.EADDRINUSE
            raise OSError(code, os.strerror(code), path) from None
    raise OSError(errno.EADDRINUSE, "another server listens here", path)


def run(
    encoding: Encoding, *, on_ready: Callable[[str], None] | None = None, **settings: Any
) -> int:
    """int, 0: serve until SIGINT or SIGTERM, then close gracefully; a second one ends the grace.

    on_ready is called with each address; settings: as for `serve`, which says what is raised.
    """
    return asyncio.run(_run(encoding, on_ready, settings))


async def _run(
    encoding: Encoding, on_ready: Callable[[str], None] | None, settings: dict[str, Any]
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
    for address in server.addresses:
        if on_ready is not None:
            on_ready(address)
    await stop.wait()
    closing = asyncio.ensure_future(server.close())
    hurrying = asyncio.ensure_future(hurry.wait())
    await asyncio.wait({closing, hurrying}, return_when=asyncio.FIRST_COMPLETED)
    if not closing.done():
        await server.close(grace=0.0)
    await closing
    hurrying.cancel()
    return 0
