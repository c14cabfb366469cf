"""One client of the server: its bytes come in, its ids go out, and all the ways in which that ends.

The event loop calls a `Connection`, which never waits. So an idle client costs a few objects, but
no task and no buffer. Its memory is bounded: it reads input only while the client takes its ids
(`pause_writing` pauses reading), at most CHUNK_SIZE bytes at a time, and its stream holds back at
most `max_pending` bytes.

Clients do not wait long for each other, because turns are short: text is encoded in slices, and
after `_TURN` seconds the rest waits for its next turn (see `fair_turns.py`). The time is measured,
so this holds whatever a text costs. Ordinary text of CHUNK_SIZE bytes takes one turn. Encoding in
a thread instead made one client a third slower, and four clients on two cores no faster.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from time import perf_counter
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast

import numpy as np

from ..errors import PendingLimitExceeded
from ..pipeline.sinks import format_text

if TYPE_CHECKING:
    from .._types import IdArray
    from ..chunker import StreamEncoder
    from .counters import Counters, Limit
    from .fair_turns import FairTurns

ERROR_MARK = b"\xff\xff\xff\xff"  # in u32 output: a message follows
CHUNK_SIZE = 1 << 15  # bytes read at once
HIGH_WATER = 1 << 15  # bytes of unsent output at which reading pauses

_TURN = 0.001  # seconds of encoding after which other clients have their turn
_SLICE = 2048  # bytes to encode between two looks at the clock; larger slices are no faster
_LEAST_SLICE = 128  # bytes of a slice of very slow text

_LINGER = 2.0  # seconds in which a client may read its last message
_HASTE = 0.1  # the same while the server closes; also the wait for further input then
_PATIENCE = 300.0  # seconds for a client that does not read, if there is no idle timeout

Format: TypeAlias = Literal["text", "u32"]

_NOTHING = memoryview(b"")
_NO_IDS = np.empty(0, np.uint32)


def error_message(problem: str, format: Format) -> bytes:
    """The bytes that tell a client of a problem. No ids follow them."""
    text = " ".join(problem.split())
    return f"error: {text}\n".encode() if format == "text" else ERROR_MARK + text.encode()


class Host(Protocol):
    """What a connection asks of the server that it belongs to."""

    counters: Counters
    _format: Format
    _turns: FairTurns
    _is_closing: bool
    _idle_timeout: float | None
    _max_lifetime: float | None

    @property
    def _is_crowded(self) -> bool: ...
    @property
    def _closing_text(self) -> str: ...
    def _open_stream(self) -> StreamEncoder: ...
    def _admit(self, connection: Connection) -> str | None: ...
    def _heard(self, connection: Connection) -> None: ...
    def _forget(self, connection: Connection) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """One client of a `Server`, with a stream of its own and the server's settings."""

    __slots__ = (
        "_buffer", "_flushed_at", "_has_ended", "_is_ending", "_is_full", "_is_lost",
        "_is_waiting", "_last_seen", "_loop", "_opened", "_rest", "_sent", "_server", "_slice",
        "_stream", "_timer", "_transport", "_written",
    )  # fmt: skip

    def __init__(self, server: Host, buffer: memoryview):
        """buffer: for input; connections may share it if the loop fills it right before a call."""
        self._server = server
        self._buffer = buffer
        self._loop = asyncio.get_running_loop()
        self._stream: StreamEncoder | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rest = _NOTHING  # received but not encoded
        self._slice = _SLICE
        self._is_waiting = False  # for a turn
        self._is_full = False  # the client must read ids first
        self._has_ended = False  # the client sends no more
        self._is_ending = False  # the last output has been written
        self._is_lost = False
        self._written = self._sent = 0  # bytes of output: given to the transport, to the system
        self._opened = self._last_seen = self._loop.time()
        self._flushed_at: float | None = None  # when the last output had been sent

    @property
    def is_stream(self) -> bool:
        """Whether the client was admitted, rather than refused at once."""
        return self._stream is not None

    @property
    def age(self) -> float:
        """Seconds since the client has connected."""
        return self._loop.time() - self._opened

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        with contextlib.suppress(OSError, AttributeError):  # to notice a dead client
            sock = transport.get_extra_info("socket")
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        problem = self._server._admit(self)
        if problem is None:
            self._stream = self._server._open_stream()
            self._set_timer()
        elif self._server._is_crowded:
            self.abort()
        else:
            self._say(problem)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_ending:  # discarded; see `_say`
            return
        self._server._heard(self)
        self._last_seen = self._loop.time()
        data = self._buffer[:nbytes]
        if self._rest:  # the loop had read the data before reading was paused
            self._rest = memoryview(bytes(self._rest) + bytes(data))
            return
        # A client whose text was slow has to queue for its turn.
        done = self._encode_for_a_turn(data) if self._slice == _SLICE else 0
        if done < nbytes and not self._is_ending:
            self._rest = memoryview(bytes(data[done:]))  # the buffer is shared
            self._set_reading()
            self._wait_for_turn()

    def eof_received(self) -> bool:
        self._has_ended = True
        if self._is_ending:
            return False
        if not self._rest:
            self._end_text()
        return True

    def pause_writing(self) -> None:
        self._is_full = True
        self._set_reading()

    def resume_writing(self) -> None:
        self._is_full = False
        self._set_reading()
        self._wait_for_turn()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        if exc is not None:
            self._server.counters.connections_reset += 1
        if self._timer is not None:
            self._timer.cancel()
        self._rest = _NOTHING
        self._server._forget(self)
        self._stream = None

    # Called by the server

    def take_turn(self) -> bool:
        """Encode some of the remaining text. False if there is nothing to do."""
        self._is_waiting = False
        if not self._rest or self._is_full or self._transport.is_closing():
            return False
        self._last_seen = self._loop.time()  # the client waits for us
        done = self._encode_for_a_turn(self._rest)
        if self._is_ending:
            return True
        self._rest = self._rest[done:]
        if self._rest:
            self._wait_for_turn()
        elif self._has_ended:
            self._end_text()
        else:
            self._set_reading()
        return True

    def hasten(self) -> None:
        """Check soon and often whether the client still sends, because the server closes."""
        self._set_timer()

    def end(self, problem: str, limit: Limit | None = None) -> None:
        """Send the ids of all text so far and the problem, and close.

        limit: the limit that was hit, for the counters. For invalid text there is `_fail`.
        """
        if self._is_ending or self._is_lost:
            return
        assert self._stream is not None
        if limit is not None:
            self._server.counters.limits_hit[limit] += 1
        size = self._stream.bytes_in
        pending = self._stream.pending
        try:
            self._give([self._encode(b"", True)], 0)
        except ValueError:  # the text ends inside a character
            size -= pending
        self._say(f"{problem}; the ids are those of the first {size} bytes")

    def abort(self) -> None:
        """Drop the client without a message."""
        self._transport.abort()

    # Encoding

    def _wait_for_turn(self) -> None:
        """Queue for a turn if there is text to encode and the client reads its ids."""
        if self._rest and not self._is_waiting and not self._is_full:
            self._is_waiting = True
            self._server._turns.ask(self.take_turn)

    def _encode_for_a_turn(self, data: memoryview) -> int:
        """Encode for at most about `_TURN` seconds and write the ids; return the bytes encoded."""
        begin = before = perf_counter()
        at = 0
        ids = []
        problem: Exception | None = None
        while at < len(data):
            part = data[at : at + self._slice]
            try:
                ids.append(self._encode(part, False))
            except Exception as error:
                problem = error
                break
            at += len(part)
            now = perf_counter()
            if now - before >= _TURN:
                self._slice = max(self._slice // 4, _LEAST_SLICE)
            else:
                self._slice = min(self._slice * 2, _SLICE)
            if now - begin >= _TURN:
                break
            before = now
        self._give(ids, at)
        if problem is not None:
            self._fail(problem)
        return at

    def _end_text(self) -> None:
        try:
            ids = self._encode(b"", True)
        except Exception as error:
            self._fail(error)
        else:
            self._give([ids], 0)
            self._finish()

    def _encode(self, data: bytes | memoryview, final: bool) -> IdArray:
        assert self._stream is not None
        return self._stream.encode_to_numpy(data, final=final)

    def _give(self, parts: list[IdArray], size: int) -> None:
        """Write the ids of `size` bytes of text."""
        counters = self._server.counters
        counters.bytes += size
        ids = parts[0] if len(parts) == 1 else np.concatenate([_NO_IDS, *parts])
        if not len(ids):
            return
        counters.tokens += len(ids)
        if self._server._format == "text":
            self._write(format_text(ids))
        else:
            self._write(ids.astype(np.dtype("<u4"), copy=False).tobytes())

    def _write(self, output: bytes) -> None:
        if output:
            self._written += len(output)
            self._transport.write(output)

    # Ending

    def _fail(self, error: BaseException) -> None:
        counters = self._server.counters
        if isinstance(error, UnicodeDecodeError):
            counters.decoding_errors += 1
            self._say(f"byte {error.start} is not UTF-8 ({error.reason})")
        elif isinstance(error, PendingLimitExceeded):
            counters.limits_hit["pending"] += 1
            self._say(str(error))
        elif isinstance(error, ValueError):  # its first line names the special token and its place
            counters.special_token_refusals += 1
            self._say(str(error).partition("\n")[0].rstrip("."))
        else:
            self._say("the server has failed")
            self._loop.call_exception_handler(
                {"message": "a connection could not be served", "exception": error}
            )

    def _say(self, problem: str) -> None:
        """Write the problem as the last output; close when the client has had time to read it."""
        self._write(error_message(problem, self._server._format))
        self._rest = _NOTHING
        self._is_ending = True
        self._last_seen = self._loop.time()
        with contextlib.suppress(OSError):  # the client may have gone
            self._transport.write_eof()
        if self._has_ended:
            self._finish()
            return
        # Closing while input is unread would reset the connection and could lose the message. So
        # for a while, input is read and discarded.
        self._set_reading()
        self._set_timer()

    def _finish(self) -> None:
        self._is_ending = True
        self._last_seen = self._loop.time()
        self._transport.close()  # after the output has been sent
        self._set_timer()

    def _set_reading(self) -> None:
        if self._has_ended or ((self._is_full or self._rest) and not self._is_ending):
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # Time

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._server._is_closing:
            delay = _HASTE
        elif self._is_ending:
            delay = _LINGER / 4
        else:
            limits = [self._server._idle_timeout, self._server._max_lifetime]
            delay = min((limit for limit in limits if limit), default=0.0) / 4
        self._timer = self._loop.call_later(delay, self._tick) if delay else None

    def _tick(self) -> None:
        now = self._loop.time()
        unsent = self._transport.get_write_buffer_size()
        if self._written - unsent > self._sent:  # the client reads its ids
            self._sent = self._written - unsent
            self._last_seen = now
        self._set_timer()
        if self._is_ending:
            self._tick_at_the_end(now, unsent)
            return
        idle_timeout, max_lifetime = self._server._idle_timeout, self._server._max_lifetime
        if self._server._is_closing:
            if not unsent and not self._rest and now - self._last_seen >= _HASTE:
                self.end(self._server._closing_text)
        elif max_lifetime and self.age >= max_lifetime:
            self.end(f"a connection may last {max_lifetime:g} seconds", "lifetime")
        elif idle_timeout and now - self._last_seen >= idle_timeout:
            if unsent:  # no message would reach it
                self._server.counters.limits_hit["unread"] += 1
                self.abort()
            else:
                self.end(f"idle for {idle_timeout:g} seconds", "idle")

    def _tick_at_the_end(self, now: float, unsent: int) -> None:
        if unsent:
            patience = self._server._idle_timeout or _PATIENCE
            if self._server._max_lifetime:
                patience = min(patience, self._server._max_lifetime)
            if now - self._last_seen >= patience:
                self._server.counters.limits_hit["unread"] += 1
                self.abort()
            return
        if self._flushed_at is None:
            self._flushed_at = now
        if now - self._flushed_at >= (_HASTE if self._server._is_closing else _LINGER):
            self._transport.close()
