"""Clients do not wait for one whose text is slow to encode. Counts turns, not seconds."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import streamtok
from streamtok.serve import Server, serve
from streamtok.serve.connection import CHUNK_SIZE

from ..serve_clients import go, hang_up, ids_of, make_text, open_client, talk, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals")

BLANKS = (("\n" + " " * 1150) * 40).encode()
BUSY = 6  # hostile clients


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves by a second at each look: any text is slow."""
    clock = map(float, itertools.count())
    monkeypatch.setattr(
        "streamtok.serve.connection.perf_counter", lambda: next(clock), raising=False
    )


class Watch:
    """Which stream encoded how many bytes, in the order in which it happened."""

    def __init__(self, server: Server):
        self.calls: list[tuple[int, int]] = []
        self._open = server._shared.open_stream
        self._numbers = itertools.count()
        server._shared.open_stream = self._open_watched

    def _open_watched(self) -> Any:
        return Watched(self._open(), next(self._numbers), self.calls)


class Watched:
    def __init__(self, stream: streamtok.StreamEncoder, number: int, calls: list[tuple[int, int]]):
        self._stream = stream
        self._number = number
        self._calls = calls

    def encode_to_numpy(self, data: Any, final: bool = False) -> Any:
        if len(data):
            self._calls.append((self._number, len(data)))
        return self._stream.encode_to_numpy(data, final=final)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


async def at_once(check: Callable[[], Any]) -> None:
    """Look at each turn of the loop whether check() is true."""
    for _ in range(1_000_000):
        if check():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not happen")


@contextlib.contextmanager
def senders(server: Server, texts: list[bytes]) -> Iterator[list[socket.socket]]:
    """Clients that have connected, and sent and ended their texts, before the loop has a turn."""
    with contextlib.ExitStack() as stack:
        clients = []
        for text in texts:
            client = socket.create_connection(("127.0.0.1", server.port))
            stack.enter_context(client)
            client.sendall(text)
            client.shutdown(socket.SHUT_WR)
            client.setblocking(False)
            clients.append(client)
        yield clients


async def answer_of(client: socket.socket) -> bytes:
    data = b""
    while got := await asyncio.get_running_loop().sock_recv(client, 1 << 16):
        data += got
    return data


@pytest.mark.usefixtures("slow")
def test_turns_go_round(enc):
    """While all are busy, nobody has a second turn before each other one has had its next."""

    async def test():
        async with await serve(enc, port=0, format="u32") as server:
            watch = Watch(server)
            with senders(server, [BLANKS[:CHUNK_SIZE]] * BUSY) as clients:
                await asyncio.gather(*(answer_of(client) for client in clients))
            calls = watch.calls
            for number in range(BUSY):
                assert sum(size for one, size in calls if one == number) == CHUNK_SIZE
            firsts = {number: calls.index((number, 2048)) for number in range(BUSY)}
            begin = max(firsts.values())  # now all have begun, and none has ended
            for at in range(begin, begin + 10 * BUSY):
                assert len({one for one, _ in calls[at : at + BUSY]}) == BUSY

    go(test)


def test_quick_text_takes_one_turn(enc, monkeypatch):
    """Ordinary texts pay nothing: what was read at once is encoded at once, and sent at once."""
    monkeypatch.setattr("streamtok.serve.connection.perf_counter", lambda: 0.0)

    async def test():
        async with await serve(enc, port=0) as server:
            watch = Watch(server)
            text = make_text(20_000, 1)
            assert ids_of(await talk(server, text), "text") == enc.encode(text)
            assert sum(size for _, size in watch.calls) == len(text)

    go(test)


# What else can happen while text waits for its turn


@pytest.mark.usefixtures("slow")
def test_an_error_in_a_late_turn(enc):
    text = b"hello world " * 1000

    async def test():
        async with await serve(enc, port=0) as server:
            *lines, last = (await talk(server, text + b"\xff" + text)).splitlines()
            assert last.endswith(b"byte 12000 is not UTF-8 (invalid start byte)")
            ids = [int(one) for one in lines]
            assert len(ids) > 1500  # those of the turns before
            assert ids == enc.encode(text)[: len(ids)]

    go(test)


@pytest.mark.usefixtures("slow")
def test_a_client_that_does_not_read_gets_no_turns(enc, monkeypatch):
    """What waits for it is bounded; when it reads, it gets all its ids."""
    monkeypatch.setattr("streamtok.serve.connection.HIGH_WATER", 100)
    text = make_text(30_000, 3)

    async def test():
        async with await serve(enc, port=0) as server:
            reader, writer = await open_client(server)
            writer.transport.pause_reading()
            await until(lambda: server.counters.connections_open == 1)
            [client] = server._clients
            sock = client._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            writer.write(text)
            writer.write_eof()
            await at_once(lambda: server.counters.bytes)
            for _ in range(50):
                await asyncio.sleep(0)
            before = server.counters.bytes
            for _ in range(50):
                await asyncio.sleep(0)
            assert server.counters.bytes == before
            assert before < len(text)
            assert client._transport.get_write_buffer_size() < 16_000  # ids of one slice
            writer.transport.resume_reading()
            assert ids_of(await reader.read(), "text") == enc.encode(text)
            await hang_up(writer)

    go(test)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("grace", [20.0, 0.0])
def test_the_end_of_the_server_between_two_turns(enc, grace):
    """The grace is for it; without any, the message says of how many bytes the ids are."""
    text = b"hello world " * 2700

    async def test():
        server = await serve(enc, port=0)
        reader, writer = await open_client(server)
        writer.write(text)
        writer.write_eof()
        await at_once(lambda: server.counters.bytes)
        assert server.counters.bytes < len(text)
        await server.close(grace)
        *lines, last = (await reader.read()).splitlines()
        if grace:
            assert [int(one) for one in [*lines, last]] == enc.encode(text)
        else:
            size = int(last.split()[-2])
            assert 0 < size < len(text)
            assert enc.decode_bytes([int(one) for one in lines]) == text[:size]
        await hang_up(writer)

    go(test)
