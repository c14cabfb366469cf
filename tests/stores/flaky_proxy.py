"""A proxy before a store, which fails as stores do: 503, answers that end too early, away."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_HOP = {"connection", "transfer-encoding", "keep-alive"}


class Proxy:
    """What goes wrong, and how often it did. 0: never.

    fail: each so many-th request is answered by 503. cut: each so many-th answer to a GET with more
    than 1000 bytes ends in the middle. `away` seconds from now on, connections are closed at once.
    """

    def __init__(self, target: int):
        self.target = target
        self.fail = self.cut = 0
        self.port = 0
        self.requests: list[str] = []
        self.faults = {"fail": 0, "cut": 0, "away": 0}
        self._until = 0.0
        self._lock = threading.Lock()
        self._counts = {"fail": itertools.count(1), "cut": itertools.count(1)}

    def go_away(self, seconds: float) -> None:
        """Be away for some seconds."""
        self._until = time.monotonic() + seconds

    @property
    def is_away(self) -> bool:
        return time.monotonic() < self._until

    def is_due(self, kind: str) -> bool:
        """Whether this request gets that fault."""
        every = getattr(self, kind)
        with self._lock:
            if not every or next(self._counts[kind]) % every:
                return False
            self.faults[kind] += 1
            return True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def _forward(self) -> None:
        proxy = self.proxy
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size) if size else None
        with proxy._lock:
            proxy.requests.append(f"{self.command} {self.path}")
        if proxy.is_away:
            proxy.faults["away"] += 1
            self.close_connection = True
            return
        if proxy.is_due("fail"):
            self._answer(503, [("Content-Length", "0"), ("Connection", "close")], b"")
            self.close_connection = True
            return
        connection = http.client.HTTPConnection("127.0.0.1", proxy.target, timeout=60)
        with contextlib.closing(connection):
            connection.request(self.command, self.path, body, dict(self.headers.items()))
            answer = connection.getresponse()
            data = answer.read()
        headers = [(k, v) for k, v in answer.getheaders() if k.lower() not in _HOP]
        if self.command != "HEAD" and not any(k.lower() == "content-length" for k, _ in headers):
            headers.append(("Content-Length", str(len(data))))
        if self.command == "GET" and len(data) > 1000 and proxy.is_due("cut"):
            data = data[: len(data) // 2]
            self.close_connection = True
        self._answer(answer.status, headers, data)

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        for key, value in headers:
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _forward

    def log_message(self, *args: Any) -> None:
        pass


@contextlib.contextmanager
def running(target: int) -> Iterator[Proxy]:
    """Run a proxy before the server at port `target`."""
    proxy = Proxy(target)
    handler = type("Handler", (_Handler,), {"proxy": proxy})

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: Any) -> None:
            """A client that goes away is nothing to tell about."""

    with Server(("127.0.0.1", 0), handler) as server:
        proxy.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
