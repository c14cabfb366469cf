"""The socket server with several real clients at a time, on TCP and Unix sockets."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from streamtok.serve import ERROR_MARK, serve

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
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals")


# Ids


@pytest.mark.parametrize("door", ["tcp", "unix"])
@pytest.mark.parametrize("format", ["text", "u32"])
def test_several_clients_at_once(enc, tmp_path, door, format):
    texts = [make_text(size, size) for size in (0, 1, 100, 5_000, 20_000, 60_000)]

    async def test():
        where = {"port": 0} if door == "tcp" else {"path": str(tmp_path / "s")}
        async with await serve(enc, format=format, **where) as server:
            answers = await asyncio.gather(
                *(talk(server, text, seed) for seed, text in enumerate(texts))
            )
        for text, answer in zip(texts, answers, strict=True):
            assert ids_of(answer, format) == enc.encode(text)

    go(test)


def test_ids_come_before_the_client_ends(enc):
    async def test():
        async with await serve(enc, port=0) as server:
            reader, writer = await open_client(server)
            sent = b""
            got = []
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


# Errors


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hello world \xff" + b"x" * 3_000_000, b"byte 12 is not UTF-8 (invalid start byte)"),
        (b"hello world \xe2\x82", b"byte 12 is not UTF-8 (unexpected end of data)"),
        (b"hello world <|endoftext|>", b"special token '<|endoftext|>' at byte 12"),
    ],
)
def test_what_is_wrong_is_told_in_the_channel(enc, data, message):
    async def test():
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


def test_a_client_that_says_nothing_more_is_told_and_dropped(enc):
    async def test():
        async with await serve(enc, port=0, idle_timeout=0.2) as server:
            reader, writer = await open_client(server)
            writer.write(b"hello world")
            assert await reader.read() == (
                b"15339\n1917\nerror: idle for 0.2 seconds; "
                b"the ids are those of the first 11 bytes\n"
            )
            assert server.counters.limits_hit["idle"] == 1
            await hang_up(writer)

    go(test)


# Unix sockets


def test_a_stale_socket_is_replaced_and_a_live_one_is_not(enc, tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()

    async def test():
        async with await serve(enc, path=str(path)) as server:
            with pytest.raises(OSError, match="another server is listening here"):
                await serve(enc, path=str(path))
            assert await talk(server, b"hello") == b"15339\n"

    go(test)


def test_what_cannot_be_served(enc, tmp_path):
    async def test():
        with pytest.raises(ValueError, match="format must be 'text' or 'u32'"):
            await serve(enc, port=0, format="json")
        with pytest.raises(FileNotFoundError):
            await serve(enc, path=str(tmp_path / "no folder" / "s"))
        with pytest.raises(OSError, match="too long"):
            await serve(enc, path=str(tmp_path / ("x" * 200)))

    go(test)


# The command


def test_the_command_on_tcp():
    args = ["--tcp", "127.0.0.1:0", "-e", "gpt2", "--format", "u32", "--metrics", "127.0.0.1:0"]
    with command(*args) as (process, address):
        assert process.stderr
        metrics = process.stderr.readline().decode().split()[-1]
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(b"hello world")
            client.shutdown(socket.SHUT_WR)
            assert ids_of(receive(client), "u32") == [31373, 995]
        with urllib.request.urlopen(metrics, timeout=20) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
            text = answer.read()
        for line in (b"bytes_total 11.0", b"tokens_total 2.0", b"connections_total 1.0"):
            assert b"\nstreamtok_" + line in text
        assert b"process_resident_memory_bytes" in text
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(b"hello world")
            assert client.recv(4) == (31373).to_bytes(4, "little")
            process.send_signal(signal.SIGHUP)
            rest, mark, message = receive(client).partition(ERROR_MARK)
            assert (ids_of(rest, "u32"), mark) == ([995], ERROR_MARK)
            assert message.startswith(b"the server is shutting down")
        assert process.wait(20) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize("option", ["--tcp", "--metrics"])
def test_an_address_in_use(tmp_path, option):
    """One line, and nothing is left behind: the service does not run without its metrics."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        args = [option, where, *(["--unix", str(tmp_path / "s")] if option == "--metrics" else [])]
        done = subprocess.run(
            [sys.executable, "-m", "streamtok", "serve", *args],
            capture_output=True, env=ENV, timeout=30, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert re.fullmatch(rb"streamtok: error: .*in use\n", done.stderr)
    assert not (tmp_path / "s").exists()
