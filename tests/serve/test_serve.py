"""The socket server with several real clients at a time, on TCP and Unix sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import streamtok
from streamtok.serve import ERROR_MARK, serve
from streamtok.serve.listening import open_tcp

from ..serve_clients import (
    ENV,
    command,
    go,
    hang_up,
    ids_of,
    make_text,
    open_client,
    receive,
    talk,
    until,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals")


@pytest.fixture(scope="module")
def enc() -> streamtok.Encoding:
    return streamtok.get_encoding("cl100k_base")


# Ids


@pytest.mark.parametrize("door", ["tcp", "unix"])
@pytest.mark.parametrize("format", ["text", "u32"])
def test_several_clients_at_once(
    enc: streamtok.Encoding, tmp_path: Path, door: str, format: Any
) -> None:
    texts = [make_text(size, size) for size in (0, 1, 100, 5_000, 20_000, 60_000)]

    async def test() -> None:
        where: dict[str, Any] = {"port": 0} if door == "tcp" else {"path": str(tmp_path / "s")}
        async with await serve(enc, format=format, **where) as server:
            answers = await asyncio.gather(
                *(talk(server, text, seed) for seed, text in enumerate(texts))
            )
        for text, answer in zip(texts, answers, strict=True):
            assert ids_of(answer, format) == enc.encode(text)

    go(test)


def test_ids_come_before_the_client_ends(enc: streamtok.Encoding) -> None:
    async def test() -> None:
        async with await serve(enc, port=0) as server:
            reader, writer = await open_client(server)
            sent = b""
            got: list[int] = []
            for i in range(3):
                line = f"line {i} of the log\n".encode()
                writer.write(line)
                sent += line
                stable = enc.stream_encoder().encode(sent)
                assert len(stable) > len(got)
                while len(got) < len(stable):
                    got.append(int(await reader.readline()))
                assert got == stable
            writer.write_eof()
            assert got + ids_of(await reader.read(), "text") == enc.encode(sent)
            await hang_up(writer)

    go(test)


def test_ids_do_not_wait_for_acknowledgements(enc: streamtok.Encoding) -> None:
    async def test() -> None:
        (listener,) = await open_tcp("127.0.0.1", 0)
        with listener, socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            loop = asyncio.get_running_loop()
            transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, accepted)
            option = transport.get_extra_info("socket").getsockopt
            assert option(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            transport.close()

    go(test)


def test_settings_reach_the_stream(enc: streamtok.Encoding) -> None:
    data = b"a<|endoftext|>\xff"

    async def test() -> None:
        settings: Any = {"allowed_special": "all", "errors": "replace"}
        async with await serve(enc, port=0, **settings) as server:
            assert ids_of(await talk(server, data), "text") == enc.encode(data, **settings)

    go(test)


# Errors


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hello world \xff" + b"x" * 3_000_000, b"byte 12 is not UTF-8 (invalid start byte)"),
        (b"hello world \xe2\x82", b"byte 12 is not UTF-8 (unexpected end of data)"),
        (b"hello world <|endoftext|>", b"special token '<|endoftext|>' at byte 12"),
    ],
)
def test_what_is_wrong_is_told_in_the_channel(
    enc: streamtok.Encoding, data: bytes, message: bytes
) -> None:
    async def test() -> None:
        async with await serve(enc, port=0) as server:
            answer = await talk(server, data)
            *ids, last = answer.splitlines()
            assert last.startswith(b"error: ")
            assert message in last
            assert [int(one) for one in ids] == enc.encode("hello world")[: len(ids)]
            assert ids_of(await talk(server, b"hello world"), "text") == enc.encode("hello world")
        async with await serve(enc, port=0, format="u32") as server:
            head, mark, text = (await talk(server, data)).partition(ERROR_MARK)
            assert mark
            assert len(head) % 4 == 0
            assert message in text

    go(test)


def test_max_pending(enc: streamtok.Encoding) -> None:
    async def test() -> None:
        async with await serve(enc, port=0, max_pending=0) as server:
            assert b"max_pending" in (await talk(server, b"hello")).splitlines()[-1]

    go(test)


def test_max_connections(enc: streamtok.Encoding) -> None:
    async def test() -> None:
        async with await serve(enc, port=0, max_connections=2) as server:
            clients = [await open_client(server) for _ in range(2)]
            for _, writer in clients:
                writer.write(b"hello world, hello")
            for reader, _ in clients:
                await reader.readline()
            answer = await talk(server, b"hello")
            assert answer == b"error: there are 2 connections already, try later\n"
            await hang_up(clients[0][1])
            for _ in range(100):
                answer = await talk(server, b"hello")
                if not answer.startswith(b"error"):
                    break
                await asyncio.sleep(0.02)
            assert answer == b"15339\n"
            await hang_up(clients[1][1])

    go(test)


def test_a_client_takes_the_place_of_one_that_has_sent_nothing(
    enc: streamtok.Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamtok.serve.server._SILENCE", 0.05)

    async def test() -> None:
        async with await serve(enc, port=0, max_connections=2) as server:
            reader, writer = await open_client(server)
            writer.write(b"hello world, hello")
            await reader.readline()
            silent = [await open_client(server)]
            assert (await talk(server, b"hello")).startswith(b"error: there are 2")  # too early
            await asyncio.sleep(0.06)
            assert await talk(server, b"hello") == b"15339\n"
            with contextlib.suppress(ConnectionResetError):
                assert await silent[0][0].read() == b""
            assert (server.counters.limits["silent"], server.counters.refused) == (1, 1)
            await until(lambda: server.counters.open == 1)
            silent.append(await open_client(server))
            silent[1][1].write(b"h")  # no longer silent
            await until(lambda: server.counters.bytes == 24)
            await asyncio.sleep(0.06)
            assert (await talk(server, b"hello")).startswith(b"error: there are 2")
            assert not server._silent
            for one in (writer, silent[0][1], silent[1][1]):
                await hang_up(one)
            await until(lambda: not server._connections)

    go(test)


def test_idle_timeout(enc: streamtok.Encoding) -> None:
    async def test() -> None:
        async with await serve(enc, port=0, idle_timeout=0.2) as server:
            reader, writer = await open_client(server)
            writer.write(b"hello world")
            assert await reader.read() == (
                b"15339\n1917\nerror: idle for 0.2 seconds; "
                b"the ids are those of the first 11 bytes\n"
            )
            await hang_up(writer)

    go(test)


def test_back_pressure(enc: streamtok.Encoding, tmp_path: Path) -> None:
    """A client that sends and does not read is held up; nothing piles up in the server."""
    text = make_text(400_000, 5)

    async def test() -> None:
        async with await serve(enc, path=str(tmp_path / "s")) as server:
            reader, writer = await asyncio.open_unix_connection(server.addresses[0], limit=1000)
            writer.transport.set_write_buffer_limits(0)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            sent = 0
            with contextlib.suppress(asyncio.TimeoutError):
                while sent < len(text):
                    writer.write(text[sent : sent + 50_000])
                    sent += 50_000
                    await asyncio.wait_for(writer.drain(), 0.5)
            assert sent < len(text) / 2
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            answer = asyncio.ensure_future(reader.read())
            await writer.drain()
            writer.write(text[sent:])
            writer.write_eof()
            assert ids_of(await answer, "text") == enc.encode(text)
            await hang_up(writer)

    go(test)


# Closing


def test_closing_tells_who_waits_and_finishes_who_has_ended(enc: streamtok.Encoding) -> None:
    text = make_text(50_000, 7)

    async def test() -> None:
        server = await serve(enc, port=0)
        idle_reader, idle = await open_client(server)
        idle.write(b"hello world, hello")
        first = await idle_reader.readline()
        busy_reader, busy = await open_client(server)
        busy.write(text)
        busy.write_eof()
        busy_answer = asyncio.ensure_future(busy_reader.read())
        await asyncio.sleep(0.01)
        start = time.monotonic()
        await server.close()
        assert time.monotonic() - start < 4
        answer = first + await idle_reader.read()
        *ids, last = answer.splitlines()
        assert [int(one) for one in ids] == enc.encode("hello world, hello")
        assert last == (
            b"error: the server is shutting down before the text has ended; "
            b"the ids are those of the first 18 bytes"
        )
        assert ids_of(await busy_answer, "text") == enc.encode(text)
        for writer in (idle, busy):
            await hang_up(writer)

    go(test)


def test_closing_does_not_wait_for_ever(enc: streamtok.Encoding) -> None:
    async def test() -> None:
        server = await serve(enc, port=0)
        reader, writer = await open_client(server)

        async def send_for_ever() -> None:
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b"hello ")
                    await writer.drain()
                    await asyncio.sleep(0.01)

        sender = asyncio.ensure_future(send_for_ever())
        await reader.readline()
        await asyncio.wait_for(server.close(grace=0.3), 5)
        assert (await reader.read()).splitlines()[-1].startswith(b"error: the server is shutting")
        sender.cancel()
        await hang_up(writer)

    go(test)


# Unix sockets


def test_a_unix_socket_is_private_and_goes_away(enc: streamtok.Encoding, tmp_path: Path) -> None:
    path = tmp_path / "s"

    async def test() -> None:
        before = os.umask(0)
        try:
            server = await serve(enc, path=str(path))
        finally:
            os.umask(before)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await server.close()
        assert not path.exists()

    go(test)


def test_a_stale_socket_is_replaced_and_a_live_one_is_not(
    enc: streamtok.Encoding, tmp_path: Path
) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()

    async def test() -> None:
        async with await serve(enc, path=str(path)) as server:
            with pytest.raises(OSError, match="another server is listening here"):
                await serve(enc, path=str(path))
            assert await talk(server, b"hello") == b"15339\n"

    go(test)


def test_other_files_are_left_alone(enc: streamtok.Encoding, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("precious")

    async def test() -> None:
        with pytest.raises(FileExistsError, match="is not a socket"):
            await serve(enc, path=str(path))
        with pytest.raises(FileNotFoundError):
            await serve(enc, path=str(tmp_path / "no folder" / "s"))
        with pytest.raises(OSError, match="too long"):
            await serve(enc, path=str(tmp_path / ("x" * 200)))

    go(test)
    assert path.read_text() == "precious"


# The command


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_command_on_tcp(enc: streamtok.Encoding, number: signal.Signals) -> None:
    with command("--tcp", "127.0.0.1:0", "-e", "gpt2", "--format", "u32") as (process, address):
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(b"hello world")
            client.shutdown(socket.SHUT_WR)
            assert ids_of(receive(client), "u32") == [31373, 995]
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(b"hello world")
            assert client.recv(4) == (31373).to_bytes(4, "little")
            process.send_signal(number)
            rest, mark, message = receive(client).partition(ERROR_MARK)
            assert (ids_of(rest, "u32"), mark) == ([995], ERROR_MARK)
            assert message.startswith(b"the server is shutting down")
        assert process.wait(20) == 0
        assert process.stderr
        assert process.stderr.read() == b""


def test_the_command_on_a_unix_socket(enc: streamtok.Encoding, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with command("--unix", path) as (process, address):
        assert address == path
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(path)
            client.sendall(b"hello world")
            client.shutdown(socket.SHUT_WR)
            assert ids_of(receive(client), "text") == enc.encode("hello world")
        process.terminate()
        assert process.wait(20) == 0
    assert not os.path.exists(path)


def test_an_address_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "streamtok", "serve", "--tcp", f"127.0.0.1:{port}"],
            capture_output=True,
            env=ENV,
            timeout=30,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"streamtok: error: ")
    assert done.stderr.count(b"\n") == 1
    assert b"in use" in done.stderr
