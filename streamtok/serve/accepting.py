"""Accepts connections, a bounded number at a time, and copes with a shortage of descriptors."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable, Sequence

_BATCH = 32  # connections to accept before the loop's other work gets its turn
_PAUSE = 0.1  # seconds to wait after the system has refused one

# The process or the system has no descriptor or no memory for another connection.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """Owns some listening sockets and makes a protocol for each client that connects.

    asyncio's own servers accept their whole backlog before the first protocol can refuse a client,
    and log a traceback for each one without a descriptor. This class accepts a batch at a time.
    When descriptors run out, it uses one that it keeps in reserve to tell the next client, and
    pauses before it tries again.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        make_protocol: Callable[[], asyncio.BaseProtocol],
        on_shortage: Callable[[socket.socket], None],
    ):
        """on_shortage: called with a client's non-blocking socket, which is closed afterwards."""
        self.listeners = list(listeners)
        self._make_protocol = make_protocol
        self._on_shortage = on_shortage
        self._reserve: int | None = None
        self._take_reserve()
        for listener in self.listeners:
            listener.setblocking(False)
        self._connecting: set[asyncio.Task[None]] = set()
        self._accepting = [asyncio.ensure_future(self._accept(one)) for one in self.listeners]

    async def close(self) -> None:
        """Stop accepting, finish the connections in progress, and close the sockets."""
        for task in self._accepting:
            task.cancel()
        await asyncio.wait([*self._accepting, *self._connecting])
        for listener in self.listeners:
            listener.close()
        self._give_reserve()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno in _SHORTAGES:
                    self._turn_away(listener)
                await asyncio.sleep(_PAUSE)
                continue
            task = asyncio.ensure_future(self._connect(sock))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)
            if len(self._connecting) >= _BATCH:
                await asyncio.wait(self._connecting)

    async def _connect(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(self._make_protocol, sock)
        except OSError:  # the system cannot watch another socket, or the client has gone
            sock.close()

    def _turn_away(self, listener: socket.socket) -> None:
        self._give_reserve()
        try:
            with contextlib.suppress(OSError):
                sock, _ = listener.accept()
                with sock:
                    sock.setblocking(False)
                    self._on_shortage(sock)
        finally:
            self._take_reserve()

    def _take_reserve(self) -> None:
        with contextlib.suppress(OSError):  # tried again at the next shortage
            self._reserve = os.open(os.devnull, os.O_RDONLY)

    def _give_reserve(self) -> None:
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
