"""Many connections at once to `streamtok serve` on loopback: equal ids, speed, memory.

    python -m benchmarks.serve_load --connections 1000

A server is started in a process of its own, on TCP and then on a Unix socket, and all clients
connect. Each sends its own text in chunks of random sizes. The clients take turns, so all streams
are open at the same time and cut differently. All ids are compared with the offline encoding of the
text.

Memory is the growth of the server's resident set after its first line, per connection: `idle` when
all clients have connected and sent one line, `held` when all have sent as much as the server
accepts and none reads an id. The kernel's socket buffers are not included.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import numpy as np

import streamtok

from . import corpus, turns

SIZES = [1, 20, 300, 4000, 20_000, 70_000]
Process = subprocess.Popen[bytes]


class WrongIds(SystemExit):
    """The ids that a client got differ from those of the offline encoding."""


@contextlib.contextmanager
def server(*options: str) -> Iterator[tuple[Process, str]]:
    """A `streamtok serve` that is ready, and its address."""
    command = [sys.executable, "-m", "streamtok", "serve", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr
    try:
        line = process.stderr.readline().decode()
        if "listening on " not in line:
            raise SystemExit(line or "the server did not start")
        yield process, line.split("listening on ")[1].strip()
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def raise_descriptor_limit(wanted: int) -> None:
    """Allow `wanted` open files. Raises SystemExit if the hard limit is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise SystemExit(f"{wanted} open files are needed, and the limit is {hard} (ulimit -Hn)")
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def make_texts(count: int, size: int) -> list[bytes]:
    """Texts that differ: slices of the five corpora, each with a number in front."""
    texts = []
    for i in range(count):
        data = corpus.load(corpus.NAMES[i % len(corpus.NAMES)])
        at = random.Random(i).randrange(max(1, len(data) - size))
        text = data[at : at + size].decode("utf-8", "ignore")
        texts.append(f"client {i}\n{text}".encode())
    return texts


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if address.startswith("/"):
        return await asyncio.open_unix_connection(address)
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def drive(
    process: Process, address: str, texts: list[bytes], expected: list[np.ndarray]
) -> dict[str, float]:
    """Run all clients at once; seconds, and bytes of memory of each. Raises WrongIds."""
    reader, writer = await connect(address)  # the first text's allocations belong to no connection
    await talk(reader, writer, b"hello\n", 0)
    before = turns.memory("VmRSS", process.pid)
    clients = await asyncio.gather(*(connect(address) for _ in texts))
    for text, (_, writer) in zip(texts, clients, strict=True):
        writer.write(text[: text.index(b"\n") + 1])
    firsts = await asyncio.gather(*(reader.readexactly(4) for reader, _ in clients))
    idle = (turns.memory("VmRSS", process.pid) - before) / len(texts)
    start = time.perf_counter()
    calls = [talk(*clients[i], text[text.index(b"\n") + 1 :], i) for i, text in enumerate(texts)]
    rests = await asyncio.gather(*calls)
    seconds = time.perf_counter() - start
    for i, (first, rest) in enumerate(zip(firsts, rests, strict=True)):
        if first + rest != expected[i].astype("<u4").tobytes():
            raise WrongIds(f"client {i} got other ids than the offline encoding's")
    return {"seconds": seconds, "idle": idle}


async def talk(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, text: bytes, seed: int
) -> bytes:
    """Send a text in random chunks, half-close, and return the whole answer."""
    answer = asyncio.ensure_future(reader.read())
    rng, at = random.Random(seed), 0
    while at < len(text):
        size = rng.choice(SIZES)
        writer.write(text[at : at + size])
        at += size
        await writer.drain()
        await asyncio.sleep(0)  # the next client's turn
    writer.write_eof()
    found = await answer
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return found


async def hold(process: Process, address: str, count: int) -> float:
    """Bytes of server memory for a connection whose client sends all it can and never reads."""
    data = b"1 2 3 4 5 6 7 8 9\n" * 50_000  # about as many ids as bytes
    before = turns.memory("VmRSS", process.pid)
    clients = [await connect(address) for _ in range(count)]
    for _, writer in clients:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(data)
    last, still = -1, 0
    while still < 3:  # until the server accepts no more data
        await asyncio.sleep(0.3)
        unsent = sum(writer.transport.get_write_buffer_size() for _, writer in clients)
        still = still + 1 if unsent == last else 0
        last = unsent
    held = (turns.memory("VmRSS", process.pid) - before) / count
    for _, writer in clients:
        writer.transport.abort()
    await asyncio.sleep(0)
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--size", type=int, default=50_000, help="bytes that each client sends")
    options = parser.parse_args()
    raise_descriptor_limit(options.connections + 64)
    enc = streamtok.get_encoding("cl100k_base")
    texts = make_texts(options.connections, options.size)
    expected = [enc.encode_to_numpy(text, disallowed_special=()) for text in texts]
    more = ["--format", "u32", "--max-connections", str(len(texts) + 8)]

    def rows() -> Iterator[list[str]]:
        for name, door in (("TCP", ["--tcp", "127.0.0.1:0"]), ("Unix", ["--unix", f"{folder}/s"])):
            with server(*door, *more) as (process, address):
                row = asyncio.run(drive(process, address, texts, expected))
                peak = turns.memory("VmHWM", process.pid) >> 20
            with server(*door, *more) as (process, address):
                held = asyncio.run(hold(process, address, len(texts)))
                most = turns.memory("VmHWM", process.pid) >> 20
            speed = sum(map(len, texts)) / row["seconds"] / 1e6
            each = [f"{one / 1024:.1f}" for one in (row["idle"], held)]
            yield [name, f"{len(texts):,}", f"{speed:.1f}", *each, f"{peak}", f"{most}"]

    columns = ["socket", "connections", "MB/s", "idle, KiB each", "held, KiB each"]
    with tempfile.TemporaryDirectory() as folder:
        turns.show([*columns, "peak, MiB", "peak held, MiB"], rows())


if __name__ == "__main__":
    main()
