"""One client of the server: reads its bytes, writes its ids, and ends the connection.

Each client has a task. The memory of a task is bounded: it reads input only while the client reads
its ids, and the stream holds back at most `max_pending` bytes.

Clients do not wait long for each other, because turns are short: text is encoded in slices, and
after `_TURN` seconds other clients have their turn. Ordinary text of CHUNK_SIZE bytes takes one
turn. Encoding in threads instead made one client a third slower, and four clients on two cores no
faster.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ..errors import PendingLimitExceeded
from ..jobs.sinks.flat import format_text
from .counters import Counters

if TYPE_CHECKING:
    from .._types import IdArray
    from ..chunker import StreamEncoder
    from .counters import Limit

ERROR_MARK = b"\xff\xff\xff\xff"  # in u32 output, an error message follows it
CHUNK_SIZE = 1 << 15  # bytes to read at a time
HIGH_WATER = 1 << 15  # bytes of unsent output at which reading pauses

_TURN = 0.001  # seconds of encoding after which other clients have their turn
_SLICE = 2048  # bytes to encode between two readings of the clock; larger slices are no faster

_LINGER = 2.0  # seconds for a client to read its last message
_HASTE = 0.1  # the same while the server closes, when it also limits the wait for input
_PATIENCE = 300.0  # seconds until a client that does not read is dropped if idle_timeout is 0

Format: TypeAlias = Literal["text", "u32"]


@dataclass
class Shared:
    """The settings and the state that all clients of a server share."""

    open_stream: Callable[[], StreamEncoder]
    format: Format
    idle_timeout: float | None
    max_lifetime: float | None
    counters: Counters = field(default_factory=Counters)
    is_closing: bool = False


class Ended(Exception):
    """Raised when the server ends a stream. The message says why."""


class Client:
    """One client of a `Server`, with a stream of its own."""

    def __init__(
        self, shared: Shared, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._shared = shared
        self._reader = reader
        self._writer = writer
        self._transport = writer.transport
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._ended: Ended | None = None
        self._is_reading = False  # waiting for text
        self._is_dropped = False  # by the server
        self._written = self._sent = 0  # bytes of output passed to the transport, to the system
        self._opened = self._last_seen = self._loop.time()
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        with contextlib.suppress(OSError, AttributeError):  # to notice a dead client
            sock = writer.get_extra_info("socket")
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    async def run(self) -> None:
        """Send the ids of the client's text until the text ends or a limit is hit."""
        self._stream = self._shared.open_stream()
        await self._until_closed(self._encode_all)

    async def refuse(self, problem: str) -> None:
        """Send only a message, and close."""
        await self._until_closed(lambda: self._say(problem))

    def hasten(self) -> None:
        """Check more often whether the client still sends, because the server is closing."""
        self._set_timer()

    def end(self, problem: str, limit: Limit | None = None) -> None:
        """Send the ids of all text so far and the problem, and close.

        limit: the limit that was hit, for the counters.
        """
        if self._ended is None:
            self._ended = Ended(problem)
            if limit is not None:
                self._shared.counters.limits_hit[limit] += 1
            if self._is_reading and self._task is not None:
                self._task.cancel()

    def drop(self) -> None:
        """Close without a message."""
        self._is_dropped = True
        self._transport.abort()

    async def _until_closed(self, work: Callable[[], Awaitable[None]]) -> None:
        self._set_timer()
        try:
            await work()
            await self._flush()
        except ConnectionError:
            self._shared.counters.connections_reset += not self._is_dropped
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._writer.close()

    # Encoding

    async def _encode_all(self) -> None:
        try:
            while data := await self._read():
                await self._encode(memoryview(data))
            self._send([self._stream.encode_to_numpy(b"", final=True)], 0)
        except ConnectionError:
            raise
        except Exception as error:
            await self._say(self._problem(error))

    async def _read(self) -> bytes:
        """Read some text; return b"" at its end. Raises Ended."""
        if self._ended is None:
            self._is_reading = True
            try:
                data = await self._reader.read(CHUNK_SIZE)
            except asyncio.CancelledError:
                if self._ended is None:
                    raise
            else:
                self._last_seen = self._loop.time()
                return data
            finally:
                self._is_reading = False
        raise self._ended

    async def _encode(self, data: memoryview) -> None:
        """Encode in turns, each after the client has read most of its ids. Raises Ended."""
        while data:
            if self._ended is not None:
                raise self._ended
            data = data[self._encode_for_a_turn(data) :]
            await asyncio.sleep(0)
            await self._drain()
            self._last_seen = self._loop.time()

    def _encode_for_a_turn(self, data: memoryview) -> int:
        """Encode for about `_TURN` seconds, write the ids, and return the size of their text."""
        begin = perf_counter()
        at = 0
        ids = []
        try:
            while at < len(data):
                part = data[at : at + _SLICE]
                ids.append(self._stream.encode_to_numpy(part))
                at += len(part)
                if perf_counter() - begin >= _TURN:
                    break
        finally:
            self._send(ids, at)
        return at

    def _send(self, parts: list[IdArray], size: int) -> None:
        """Write the ids of `size` bytes of text, and count both."""
        self._shared.counters.bytes += size
        ids = np.concatenate(parts) if parts else np.empty(0, np.uint32)
        self._shared.counters.tokens += len(ids)
        if self._shared.format == "text":
            self._write(format_text(ids))
        else:
            self._write(ids.astype(np.dtype("<u4"), copy=False).tobytes())

    def _write(self, output: bytes) -> None:
        if output:
            self._written += len(output)
            self._writer.write(output)

    async def _drain(self) -> None:
        """Wait while too much output is unsent. Raises ConnectionError."""
        await self._writer.drain()
        if self._transport.is_closing():
            raise ConnectionResetError

    async def _flush(self) -> None:
        """Wait until the system has accepted all output."""
        self._transport.set_write_buffer_limits(0)
        await self._drain()

    # Ending

    def _problem(self, error: Exception) -> str:
        """Count the error that ended the text, and return the message for the client."""
        counters = self._shared.counters
        if isinstance(error, Ended):
            size, pending = self._stream.bytes_in, self._stream.pending
            try:
                self._send([self._stream.encode_to_numpy(b"", final=True)], 0)
            except ValueError:  # the text ends inside a character
                size -= pending
            return f"{error}; the ids are those of the first {size} bytes"
        if isinstance(error, UnicodeDecodeError):
            counters.decoding_errors += 1
            return f"byte {error.start} is not UTF-8 ({error.reason})"
        if isinstance(error, PendingLimitExceeded):
            counters.limits_hit["pending"] += 1
            return str(error)
        if isinstance(error, ValueError):  # the first line names the special token and its offset
            counters.special_token_refusals += 1
            return str(error).partition("\n")[0].rstrip(".")
        self._loop.call_exception_handler(
            {"message": "a connection could not be served", "exception": error}
        )
        return "the server has failed"

    async def _say(self, problem: str) -> None:
        """Write the problem as the last output, and give the client time to read it.

        Closing while input is unread would reset the connection and could lose the message. So
        input is read and discarded in the meantime.
        """
        text = " ".join(problem.split())
        is_text = self._shared.format == "text"
        self._write(f"error: {text}\n".encode() if is_text else ERROR_MARK + text.encode())
        with contextlib.suppress(OSError):  # the client may be gone
            self._writer.write_eof()
        discarding = asyncio.ensure_future(self._discard())
        try:
            await self._flush()
            linger = _HASTE if self._shared.is_closing else _LINGER
            await asyncio.wait({discarding}, timeout=linger)
        finally:
            discarding.cancel()

    async def _discard(self) -> None:
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(CHUNK_SIZE):
                pass

    # Time

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        limits = self._shared.idle_timeout, self._shared.max_lifetime, _PATIENCE
        delay = _HASTE if self._shared.is_closing else min(one for one in limits if one) / 4
        self._timer = self._loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        """Check the time limits."""
        shared, now = self._shared, self._loop.time()
        unsent = self._transport.get_write_buffer_size()
        if self._written - unsent > self._sent:  # the client reads its ids
            self._sent = self._written - unsent
            self._last_seen = now
        self._set_timer()
        idle_timeout, max_lifetime = shared.idle_timeout, shared.max_lifetime
        idle = now - self._last_seen
        if unsent:
            if idle >= (idle_timeout or _PATIENCE):  # no message would reach the client
                shared.counters.limits_hit["unread"] += 1
                self.drop()
        elif shared.is_closing and self._is_reading and idle >= _HASTE:
            self.end(CLOSING)
        elif idle_timeout and self._is_reading and idle >= idle_timeout:
            self.end(f"idle for {idle_timeout:g} seconds", "idle")
        if max_lifetime and now - self._opened >= max_lifetime:
            self.end(f"a connection may last {max_lifetime:g} seconds", "lifetime")


CLOSING = "the server is shutting down before the text has ended"
