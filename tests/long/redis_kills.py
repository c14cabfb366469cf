"""Kill Redis consumers at random moments and compare their ids with the offline encoding's.

A real `redis-server` on a Unix socket, the consumers of docs/redis_consumer.py as processes, and a
producer that never pauses. At the end every stream's ids must be those of its texts as a whole.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import redis

import streamtok

from ..doc_blocks import module_at

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
BACKLOG = 500  # entries of a stream that wait for consumers


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


class Producer(threading.Thread):
    """Adds entries to all keys, so many that consumers always find some, until `stop` is set."""

    def __init__(self, url: str, keys: list[str], seed: int):
        super().__init__(daemon=True)
        self._url, self._seed = url, seed
        self.added: dict[str, list[Entry]] = {key: [] for key in keys}
        self.stop = threading.Event()

    def run(self) -> None:
        client = redis.Redis.from_url(self._url, protocol=2)
        rng = random.Random(self._seed)
        sources = {key: make_entries(rng.randrange(1 << 30)) for key in self.added}
        while not self.stop.is_set():
            for key, entries in self.added.items():
                if len(entries) - self._encoded(client, key) < BACKLOG:
                    self._append(client, key, list(itertools.islice(sources[key], BACKLOG)))
            time.sleep(0.005)
        for key in self.added:
            self._append(client, key, [{"text": b"", "end": b"1"}])
        client.close()

    def _append(self, client: redis.Redis, key: str, entries: list[Entry]) -> None:
        first = len(self.added[key]) + 1
        self.added[key] += entries
        # With numbers of our own, so that trying once more cannot add an entry twice.
        while True:
            pipe = client.pipeline(transaction=False)
            for i, entry in enumerate(entries):
                pipe.xadd(key, entry, id=f"{first + i}-1")  # type: ignore[arg-type]
            try:
                for result in pipe.execute(raise_on_error=False):
                    if isinstance(result, Exception) and "equal or smaller" not in str(result):
                        raise result
                return
            except (redis.ConnectionError, redis.TimeoutError):
                time.sleep(0.02)

    @staticmethod
    def _encoded(client: redis.Redis, key: str) -> int:
        with contextlib.suppress(redis.RedisError):  # the server is being killed
            last: Any = client.hget(f"{{{key}}}:state", "last") or b"0-0"
            return int(last.partition(b"-")[0])
        return 0


def start_consumer(url: str, name: str, keys: list[str]) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(SCRIPT), "--url", url, "--name", name, "--count", "3"]
    command += ["--min-idle-ms", "300", "--encoding", "gpt2", *keys]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})


def run(kills: int, server_kills: int, seed: int, consumers: int) -> dict[str, int]:
    """Counts of what happened. Raises AssertionError where the ids differ."""
    rng = random.Random(seed)
    keys = ["log:a", "log:b", "log:c"]
    encoding = streamtok.get_encoding("gpt2")
    crashes = ["consumer"] * kills + ["server"] * server_kills
    rng.shuffle(crashes)
    left = 0
    with redis_server() as server, contextlib.ExitStack() as stack:
        client = stack.enter_context(contextlib.closing(server.client()))
        names = [f"consumer-{i}" for i in range(consumers)]
        example = module_at(SCRIPT).Consumer(client, encoding, keys, group="ids", name="-")
        example.create_groups()
        running = {name: start_consumer(server.url, name, keys) for name in names}

        def stop_all() -> None:
            for process in running.values():
                process.kill()
                process.wait()

        stack.callback(stop_all)
        producer = Producer(server.url, keys, seed)
        producer.start()
        time.sleep(0.5)
        for crash in crashes:
            time.sleep(rng.uniform(0.2, 0.6))
            if crash == "server":
                server.kill()
                time.sleep(rng.uniform(0, 0.1))
                server.start()
                continue
            name = rng.choice(list(running)[:2])  # the two oldest: others may not be at work yet
            running[name].kill()
            running[name].wait()
            left += any(
                info["name"] == name.encode() and info["pending"]
                for key in keys
                for info in client.xinfo_consumers(key, "ids")  # type: ignore[union-attr]
            )
            del running[name]
            running[name] = start_consumer(server.url, name, keys)
        producer.stop.set()
        producer.join()
        deadline = time.monotonic() + 60
        while not all(is_done(client, key, f"{len(producer.added[key])}-1") for key in keys):
            assert time.monotonic() < deadline, "the consumers do not get to the end"
            assert all(process.poll() is None for process in running.values())
            time.sleep(0.05)
        total = 0
        for key in keys:
            kept: Any = client.xlen(key)
            assert kept == len(producer.added[key]), f"{key}: Redis lost what it had confirmed"
            expected = offline(encoding, producer.added[key])
            assert stored(client, key) == expected, f"{key}: not the offline encoding's ids"
            total += len(expected)
        for process in running.values():
            process.terminate()
            assert process.wait(20) == 0
    entries = sum(map(len, producer.added.values()))
    return {"kills": kills, "kills that left entries pending": left,
            "server kills": server_kills, "entries": entries, "ids": total}  # fmt: skip


def one_round(seed: int) -> Counter[str]:
    return Counter(run(kills=20, server_kills=2, seed=seed, consumers=3))
