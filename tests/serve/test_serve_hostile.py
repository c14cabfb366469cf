"""The socket server with slow, greedy, broken and vanished clients, and at its limits."""

import asyncio
import contextlib
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from streamtok.serve import serve

from ..serve_clients import (
    ENV,
    command,
    go,
    hang_up,
    ids_of,
    make_text,
    open_client,
    talk,
    until,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads memory and limits from /proc")


# Slow clients


def test_slow_senders_hold_up_nobody_and_end_by_their_lifetime(enc):
    """Slowloris: a byte now and then keeps a connection from being idle, not from its end."""

    async def test():
        settings = {"idle_timeout": 0.4, "max_lifetime": 1.0, "max_connections": 40}
        async with await serve(enc, port=0, **settings) as server:

            async def trickle(i):
                reader, writer = await open_client(server)
                answer = asyncio.ensure_future(reader.read())
                while not answer.done():
                    with contextlib.suppress(ConnectionError):
                        writer.write(b"a")
                    await asyncio.sleep(0.05)
                await hang_up(writer)
                return await answer

            slow = [asyncio.ensure_future(trickle(i)) for i in range(40)]
            await until(lambda: server.counters.connections_open == 40)
            assert (await talk(server, b"hello")).startswith(b"error: there are 40 connections")
            for answer in await asyncio.gather(*slow):
                *ids, last = answer.splitlines()
                found = re.fullmatch(
                    rb"error: a connection may last 1 seconds; "
                    rb"the ids are those of the first (\d+) bytes",
                    last,
                )
                assert found
                assert 10 <= int(found[1]) <= 30
                assert [int(one) for one in ids] == enc.encode("a" * int(found[1]))
            assert server.counters.limits_hit["lifetime"] == 40
            await until(lambda: server.counters.connections_open == 0)
            assert await talk(server, b"hello") == b"15339\n"

    go(test)


def test_a_slow_reader_that_reads_stays(enc, tmp_path):
    """What counts is that ids are taken, also when nothing can be sent meanwhile."""
    data = b"1 2 3 4 5 6 7 8 9\n" * 30_000

    async def test():
        path = str(tmp_path / "s")
        async with await serve(enc, path=path, idle_timeout=0.5) as server:
            loop = asyncio.get_running_loop()
            with socket.socket(socket.AF_UNIX) as client:
                client.setblocking(False)
                await loop.sock_connect(client, path)
                await until(lambda: server.counters.connections_open == 1)
                # Small buffers in the kernel: it takes more often, and less.
                connection = next(iter(server._clients))
                sock = connection._transport.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

                async def send():
                    await loop.sock_sendall(client, data)
                    client.shutdown(socket.SHUT_WR)

                sending = asyncio.ensure_future(send())
                answer, waits, last = b"", [0.0], server.counters.bytes
                began = changed = loop.time()
                while got := await loop.sock_recv(client, 4096):
                    answer += got
                    if server.counters.bytes != last:
                        waits.append(loop.time() - changed)
                        changed, last = loop.time(), server.counters.bytes
                    if loop.time() - began < 3.0:
                        await asyncio.sleep(0.03)
                await sending
            assert max(waits) > 0.7  # longer than the timeout, with nothing read from the client
            assert ids_of(answer, "text") == enc.encode(data)
            assert not any(server.counters.limits_hit.values())

    go(test)


def test_who_never_reads_is_counted(enc, tmp_path):
    async def test():
        path = str(tmp_path / "s")
        async with await serve(enc, path=path, idle_timeout=0.3) as server:
            with socket.socket(socket.AF_UNIX) as client:
                client.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_connect(client, path)
                with pytest.raises(ConnectionError):  # noqa: PT012
                    while True:
                        await loop.sock_sendall(client, b"1 2 3 4 5" * 10_000)
            await until(lambda: server.counters.connections_open == 0)
            assert server.counters.limits_hit["unread"] == 1
            assert server.counters.limits_hit["idle"] == 0

    go(test)


# Broken clients


def test_resets_at_any_moment(enc):
    """A reset while ids are on their way, before any, and after the end of the text."""
    rng = random.Random(11)

    async def test():
        async with await serve(enc, port=0) as server:
            for i in range(60):
                _, writer = await open_client(server)
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if i % 3:
                    writer.write(make_text(rng.randrange(20_000), i))
                if i % 5 == 0:
                    writer.write_eof()
                await asyncio.sleep(rng.random() * 0.02)
                writer.transport.abort()
            await until(lambda: server.counters.connections_open == 0)
            assert server.counters.connections == 60
            assert server.counters.connections_reset > 0
            assert await talk(server, b"hello") == b"15339\n"

    go(test)


# Too many


def test_a_crowd_of_refused_clients(enc):
    """Those beyond the limit are told, up to a number; streams go on undisturbed meanwhile."""
    text = make_text(100_000, 8)

    async def test():
        async with await serve(enc, port=0, max_connections=1) as server:
            reader, writer = await open_client(server)
            working = asyncio.ensure_future(reader.read())
            writer.write(text[:-1000])
            await until(lambda: server.counters.connections_open == 1)
            crowd = await asyncio.gather(*(open_client(server) for _ in range(200)))
            told = 0
            for reader, _ in crowd:
                with contextlib.suppress(ConnectionError):
                    answer = await asyncio.wait_for(reader.read(), 5)
                    told += answer == b"error: there are 1 connections already, try later\n"
            assert 60 <= told <= 70
            assert server.counters.connections_refused == 200
            assert server.counters.limits_hit["connections"] == 200
            writer.write(text[-1000:])
            writer.write_eof()
            assert ids_of(await working, "text") == enc.encode(text)
            for _, one in [*crowd, (reader, writer)]:
                await hang_up(one)
            await until(lambda: not server._clients)
            assert await talk(server, b"hello") == b"15339\n"

    go(test)


TOO_FEW = "connections need {} open files, and the hard limit is {}: raise it (ulimit -Hn)"


@LINUX
@pytest.mark.parametrize(
    ("limits", "asked", "expected"),
    [
        ("-Sn 256", None, "1000 1192"),
        ("-n 300", None, "108 300"),
        ("-n 300", 50, "50 300"),
        ("-n 300", 200, TOO_FEW.format(392, 300) + ", or use --max-connections 108"),
    ],
)
def test_the_limit_of_open_files(limits, asked, expected):
    """Raised where it has to be and can be; else there are fewer connections."""
    code = (
        "import resource; from streamtok.serve.listening import reserve_descriptors; "
        f"print(reserve_descriptors({asked}, 1000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run(
        ["bash", "-c", f'ulimit {limits} && exec "$0" -c "$1"', sys.executable, code],
        capture_output=True, env=ENV, timeout=30, check=False, text=True,
    )  # fmt: skip
    assert (done.stdout or done.stderr).strip().endswith(expected)


# Stopping


def test_a_stop_gives_the_ids_of_all_that_was_sent(enc):
    """Each of 50 clients has sent its text and not ended it."""
    texts = [make_text(4_000, i) for i in range(50)]

    async def test():
        server = await serve(enc, port=0)
        port = server.port
        clients = []
        for text in texts:
            reader, writer = await open_client(server)
            writer.write(text)
            clients.append((asyncio.ensure_future(reader.read()), writer))
        await asyncio.gather(*(writer.drain() for _, writer in clients))
        await until(lambda: server.counters.connections_open == 50)
        began = time.monotonic()
        await server.close()
        assert time.monotonic() - began < 4
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        for text, (answer, writer) in zip(texts, clients, strict=True):
            *ids, last = (await answer).splitlines()
            assert [int(one) for one in ids] == enc.encode(text, disallowed_special=())
            assert last.endswith(b"the ids are those of the first %d bytes" % len(text))
            await hang_up(writer)

    go(test)


@pytest.mark.parametrize(("grace", "signals"), [("0.5", 1), ("600", 2)])
def test_sigterm_and_a_client_that_never_reads(tmp_path, grace, signals):
    """The grace ends after its time, or with a second signal."""
    path = str(tmp_path / "s")
    args = ["--unix", path, "--grace", grace]
    with command(*args) as (process, _), socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.settimeout(0.2)
        with contextlib.suppress(TimeoutError, socket.timeout):
            while True:
                client.send(b"1 2 3 4 5" * 10_000)
        began = time.monotonic()
        for i in range(signals):
            time.sleep(0.5 * i)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert 0.5 <= time.monotonic() - began < 5


def test_the_mode_of_a_unix_socket(tmp_path):
    path = tmp_path / "s"
    with command("--unix", str(path), "--unix-mode", "660") as (process, _):
        assert path.stat().st_mode & 0o777 == 0o660
        process.kill()
        process.wait()
    assert path.exists()  # killed: a stale socket, which the next one replaces
    with command("--unix", str(path)) as (process, _):
        assert path.stat().st_mode & 0o777 == 0o600
        process.terminate()
        assert process.wait(20) == 0
    assert not path.exists()
