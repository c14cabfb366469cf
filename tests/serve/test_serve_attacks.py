"""Attacks on the socket server: on descriptors, standard error and with signals."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from streamtok.serve import serve
from streamtok.serve.listening import open_unix, remove_unix
from streamtok.serve.log import Log

from ..serve_clients import ENV, command, go, receive, talk

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits of another process")
COMMAND = [sys.executable, "-m", "streamtok", "serve"]
HANG = 60  # seconds after which a process that should end in one has hung


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=HANG)


def ask(address: str, text: bytes = b"hello") -> bytes:
    with contextlib.closing(connect(address)) as client:
        client.sendall(text)
        client.shutdown(socket.SHUT_WR)
        return receive(client)


# Descriptors


@LINUX
def test_out_of_descriptors_clients_wait(tmp_path):
    """The limit is lowered under the running service: clients wait, and are served later."""
    import resource

    with command("--tcp", "127.0.0.1:0") as (process, address):
        used = len(os.listdir(f"/proc/{process.pid}/fd"))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + 3, used + 3))
        with contextlib.ExitStack() as stack:
            crowd = [stack.enter_context(contextlib.closing(connect(address))) for _ in range(12)]
            for client in crowd:
                with contextlib.suppress(ConnectionError):
                    client.sendall(b"hello world, hello")
            assert crowd[0].makefile("rb").readline() == b"15339\n"
            for client in crowd:
                client.shutdown(socket.SHUT_WR)
            for client in crowd[1:]:
                assert receive(client).startswith(b"15339\n")
        assert ask(address) == b"15339\n"
        process.terminate()
        assert process.wait(HANG) == 0
        assert process.stderr
        assert b"out of system resource" in process.stderr.read()


# Standard error


@contextlib.contextmanager
def full_pipe() -> Iterator[int]:
    """The writing end of a pipe that is full, and that nobody reads."""
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, b"x" * 4096)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, b"x")
        os.set_blocking(writing, True)
        yield writing
    finally:
        os.close(reading)
        os.close(writing)


def test_a_full_pipe_on_standard_error_stops_nothing(tmp_path):
    path = tmp_path / "s"
    with full_pipe() as pipe:
        process = subprocess.Popen([*COMMAND, "--unix", str(path)], stderr=pipe, env=ENV)
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(HANG)
                for _ in range(HANG * 100):
                    # The path is there a moment before the socket listens.
                    if client.connect_ex(str(path)) == 0:
                        break
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(0.01)
                client.sendall(b"hello")
                client.shutdown(socket.SHUT_WR)
                assert receive(client) == b"15339\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(HANG) == 0
        finally:
            process.kill()
            process.wait()
    assert not path.exists()


def test_what_asyncio_complains_of_goes_to_the_log(monkeypatch):
    """One traceback, and not the thousand that an attacker can cause; and only meanwhile."""
    written = []
    monkeypatch.setattr(Log, "say", lambda self, text: written.append(text))
    logger = logging.getLogger("asyncio")
    handlers, propagate = list(logger.handlers), logger.propagate

    async def test():
        loop = asyncio.get_running_loop()
        for _ in range(1000):
            error = ValueError("no good")
            loop.call_exception_handler({"message": "it failed", "exception": error})

    with Log():
        asyncio.run(test())
    assert (logger.handlers, logger.propagate) == (handlers, propagate)
    assert written[0].startswith("it failed\n")
    assert "ValueError: no good" in written[0]
    assert len(written) < 30  # one a second


def test_a_failure_in_the_server_is_told(enc):
    """The client hears that, the log hears what, and the others are served."""
    heard = []

    async def test():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        async with await serve(enc, port=0) as server:
            original = server._shared.open_stream

            def broken():
                class Broken:
                    pending = 0

                    def encode_to_numpy(self, *_, **__):
                        raise RuntimeError("broken")

                return Broken()

            server._shared.open_stream = broken
            assert await talk(server, b"hello") == b"error: the server has failed\n"
            server._shared.open_stream = original
            assert await talk(server, b"hello") == b"15339\n"
        assert [str(one["exception"]) for one in heard] == ["broken"]

    go(test)


# Starting


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_path_that_is_no_socket_is_left_alone(tmp_path, kind):
    path, other = tmp_path / "s", tmp_path / "other"
    if kind == "folder":
        path.mkdir()
    else:
        (path if kind == "file" else other).write_text("precious")
    if kind == "link":
        path.symlink_to(other)
    before = path.lstat()
    with pytest.raises(FileExistsError, match="exists and is not a socket"):
        open_unix(str(path), 0o600)
    assert path.lstat() == before
    assert kind == "folder" or path.read_text() == "precious"


def test_a_file_in_the_place_of_our_socket_is_left_alone(tmp_path):
    """Put there while the server ran, with whatever inode."""
    path = tmp_path / "s"
    sock, inode = open_unix(str(path), 0o600)
    with sock:
        path.unlink()
        path.write_text("precious")
        found = path.stat()
        for one in (inode, (found.st_dev, found.st_ino)):
            remove_unix(str(path), one)
            assert path.read_text() == "precious"
