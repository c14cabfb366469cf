"""Serves a page by uvicorn: on the loopback unless told otherwise."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from ..errors import MissingLibraryError
from ..pipeline.host_port import format_host_port
from .app import View

try:
    import uvicorn
except ModuleNotFoundError:
    raise MissingLibraryError("the pages of streamtok.view", "uvicorn", "web") from None

__all__ = ["Server"]

_GRACE = 2  # seconds for answers that are under way when the server ends


class Server:
    """A socket that listens, and the server behind it. The socket is there before `run`."""

    def __init__(self, app: View, host: str, port: int) -> None:
        """port 0: any that is free. Raises OSError."""
        self._socket = _listen(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
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
