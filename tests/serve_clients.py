"""Clients and servers for the tests of the socket service."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import streamtok
from streamtok.serve import Server

ROOT = str(Path(streamtok.__file__).parent.parent)
ENV = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]),
}


def make_text(size: int, seed: int) -> bytes:
    rng = random.Random(seed)
    words = ["the", " Quick", " naïve", "日本語", "🙂", " don't", "x" * 30, "12345", "\n\n", "\t"]
    return "".join(rng.choices(words, k=size)).encode()


def ids_of(answer: bytes, format: str) -> list[int]:
    if format == "text":
        return [int(line) for line in answer.split()]
    return [int(one) for one in np.frombuffer(answer, "<u4")]


def go(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 30))


async def talk(server: Server, data: bytes, seed: int = 0) -> bytes:
    """Send the data in random chunks, half-close, and give all that comes back."""
    reader, writer = await open_client(server)
    answer = asyncio.ensure_future(reader.read())
    rng = random.Random(seed)
    at = 0
    with contextlib.suppress(ConnectionError):
        while at < len(data):
            size = rng.choice([1, 3, 100, 5000, 70_000])
            writer.write(data[at : at + size])
            await writer.drain()
            at += size
            if rng.random() < 0.2:
                await asyncio.sleep(0)
        writer.write_eof()
    try:
        return await answer
    finally:
        await hang_up(writer)


async def open_client(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = server.addresses[0]
    if address.startswith("/"):
        return await asyncio.open_unix_connection(address)
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def until(check: Any, seconds: float = 10.0) -> None:
    """Wait for check() to be true. Fails after some seconds."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.01)


@contextlib.contextmanager
def command(*args: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`streamtok serve` and the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "streamtok", "serve", *args], stderr=subprocess.PIPE, env=ENV
    )
    assert process.stderr
    try:
        line = process.stderr.readline().decode()
        found = re.fullmatch(r"streamtok: listening on (.*)\n", line)
        assert found, line
        yield process, found[1]
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()


def receive(client: socket.socket) -> bytes:
    data = b""
    while got := client.recv(1 << 16):
        data += got
    return data
