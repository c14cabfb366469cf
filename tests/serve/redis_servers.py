"""A real redis-server on a Unix socket, entries for it, and what is stored in it."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import redis

import streamtok

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "redis_consumer.py"
WORDS = [
    "the",
    " Quick",
    " naïve",
    " 日本語",
    "🙂",
    " don't",
    "x" * 30,
    " 12345",
    "\n\n",
    "\t",
    "  ",
]
Entry = dict[str, bytes]


class RedisServer:
    """A redis-server of our own, in a folder of its own, that writes all it knows to the disk."""

    def __init__(self, folder: str):
        self.path = os.path.join(folder, "redis.sock")
        self.url = f"unix://{self.path}"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._options = f"--bind 127.0.0.1 --port {self.port} --unixsocket {self.path}".split()
        self._options += ["--dir", folder]
        # "no": all is written to the file before the answer goes out, and so it outlives the
        # process. With "everysec" Redis puts writing off while the disk is busy.
        self._options += ["--save", "", "--appendonly", "yes", "--appendfsync", "no"]
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        program = shutil.which("redis-server")
        assert program, "redis-server is not installed"
        self._process = subprocess.Popen([program, *self._options], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        with contextlib.closing(self.client()) as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.RedisError:  # not there yet, or reading its file
                    assert time.monotonic() < deadline, "redis-server does not answer"
                    time.sleep(0.02)

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, protocol=2)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def redis_server() -> Iterator[RedisServer]:
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(folder)
        try:
            yield server
        finally:
            server.kill()


def make_entries(seed: int) -> Iterator[Entry]:
    """Pieces of texts, cut anywhere, also inside characters; some end a text, some are empty."""
    rng = random.Random(seed)
    data = b""
    while True:
        while len(data) < 1000:
            data += "".join(rng.choices(WORDS, k=1000)).encode()
        size = rng.choice([0, 1, 2, 5, 30, 60])
        entry, data = {"text": data[:size]}, data[size:]
        if rng.random() < 0.02:
            entry["end"] = b"1"
        yield entry


def offline(encoding: streamtok.Encoding, entries: list[Entry]) -> list[int]:
    """The ids of the texts that these entries are, each encoded as a whole."""
    ids: list[int] = []
    text = b""
    for entry in entries:
        text += entry["text"]
        if "end" in entry:
            ids += encoding.encode(text, errors="replace", disallowed_special=())
            text = b""
    assert not text
    return ids


def stored(client: redis.Redis, key: str) -> list[int]:
    """The ids that were given out for a key."""
    rows: Any = client.xrange(f"{{{key}}}:ids")
    return np.frombuffer(b"".join(fields[b"ids"] for _, fields in rows), "<u4").tolist()


def is_done(client: redis.Redis, key: str, last: str) -> bool:
    """bool: the entry `last` of a key was encoded, and nothing is pending."""
    pending: Any = client.xpending(key, "ids")
    return client.hget(f"{{{key}}}:state", "last") == last.encode() and not pending["pending"]
