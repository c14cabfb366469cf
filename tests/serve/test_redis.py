"""docs/redis_consumer.py with a real redis-server: every id exactly once, whatever dies."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import redis
from redis.client import Pipeline

import streamtok

from ..doc_blocks import DOCS, blocks, module_at, need, run_shell

pytestmark = pytest.mark.skipif(os.name != "posix", reason="redis-server and signals")
example = module_at(DOCS / "redis_consumer.py")
ENCODING = streamtok.get_encoding("gpt2")
KEY = "log"
WORDS = [
    "the", " Quick", " naïve", " 日本語", "🙂", " don't", "x" * 30, " 12345", "\n\n", "\t", "  ",
]  # fmt: skip
Entry = dict[str, bytes]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """That of a redis-server of our own, which answers."""
    need("redis-server")
    shown = subprocess.run(["redis-server", "--version"], capture_output=True, check=True).stdout
    if int(shown.partition(b"v=")[2].partition(b".")[0]) < 7:
        need("redis-server of version 7 or newer")  # which no program is called
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = f"--bind 127.0.0.1 --port {port} --dir {tmp_path_factory.mktemp('redis')}".split()
    command = ["redis-server", *options, "--save", ""]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            with redis.Redis(port=port) as client:
                deadline = time.monotonic() + 30
                while not answers(client):
                    assert time.monotonic() < deadline, "redis-server does not answer"
                    time.sleep(0.02)
            yield port
        finally:
            process.kill()


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:  # not there yet
        return False


@pytest.fixture
def client(port: int) -> Iterator[redis.Redis]:
    with redis.Redis(port=port, protocol=2) as client:
        client.flushall()
        yield client


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


def offline(entries: list[Entry]) -> list[int]:
    """The ids of the texts that these entries are, each encoded as a whole."""
    ids: list[int] = []
    text = b""
    for entry in entries:
        text += entry["text"]
        if "end" in entry:
            ids += ENCODING.encode(text, errors="replace", disallowed_special=())
            text = b""
    assert not text
    return ids


def is_done(client: redis.Redis, last: int) -> bool:
    """Whether the last entry was encoded, and nothing is pending."""
    pending: Any = client.xpending(KEY, "ids")
    return client.hget(f"{{{KEY}}}:state", "last") == b"%d-1" % last and not pending["pending"]


def make_consumer(client: redis.Redis, name: str, **settings: Any) -> Any:
    settings = {"min_idle_ms": 0, "count": 4, **settings}
    consumer = example.Consumer(client, ENCODING, [KEY], group="ids", name=name, **settings)
    consumer.create_groups()
    return consumer


def add(client: redis.Redis, entries: list[Entry], first: int = 1) -> None:
    for i, entry in enumerate(entries, first):
        client.xadd(KEY, entry, id=f"{i}-1")


def some_entries(count: int, seed: int = 1) -> list[Entry]:
    return [*itertools.islice(make_entries(seed), count - 1), {"text": b"", "end": b"1"}]


def deliver(consumer: Any, count: int) -> list[bytes]:
    """Entries given to a consumer that does nothing with them for now."""
    reply = consumer.client.xreadgroup("ids", consumer.name, {KEY: ">"}, count)
    return [entry for entry, _ in reply[0][1]]


def check(client: redis.Redis, entries: list[Entry]) -> None:
    """All entries are encoded and acknowledged, and the ids are those of the whole texts."""
    assert is_done(client, len(entries))
    rows: Any = client.xrange(f"{{{KEY}}}:ids")
    stored = b"".join(fields[b"ids"] for _, fields in rows)
    assert np.frombuffer(stored, "<u4").tolist() == offline(entries)


def run_until_done(consumer: Any, last: int) -> None:
    for _ in range(1000):
        consumer.claim_at = 0.0
        consumer.step(block_ms=10)
        if is_done(consumer.client, last):
            return
    raise AssertionError("the consumer does not get to the end")


class Died(BaseException):
    """The process was killed here."""


@pytest.mark.parametrize("point", ["delivered", "encoded", "before", "after", "connection"])
@pytest.mark.parametrize("nth", [1, 7])
def test_death_at_each_point(client, monkeypatch, point, nth):
    """Between delivery and the end of the nth transaction; the next consumer takes over."""
    entries = some_entries(60)
    add(client, entries)
    calls = itertools.count(1)
    execute, multi = Pipeline.execute, Pipeline.multi

    def die_at(now):
        if point == now and next(calls) == nth:
            raise Died

    def patched_multi(self):
        die_at("encoded")
        multi(self)

    def patched_execute(self, *args, **settings):
        die_at("before")
        result = execute(self, *args, **settings)
        die_at("after")
        if point == "connection" and next(calls) == nth:  # the answer never came
            raise redis.ConnectionError
        return result

    victim = make_consumer(client, "victim")
    with monkeypatch.context() as patch:
        patch.setattr(Pipeline, "multi", patched_multi)
        patch.setattr(Pipeline, "execute", patched_execute)
        if point == "delivered":
            for _ in range(nth - 1):
                victim.step(block_ms=10)
            deliver(victim, 4)
        else:
            with pytest.raises((Died, redis.ConnectionError)):
                run_until_done(victim, 60)
    done = client.hget(f"{{{KEY}}}:state", "last")
    assert done != b"60-1"
    run_until_done(make_consumer(client, "heir"), 60)
    check(client, entries)


def test_deliveries_in_any_order(client):
    rng = random.Random(1)
    entries = some_entries(120)
    add(client, entries)
    members = [make_consumer(client, f"member {i}") for i in range(4)]
    held = []
    for _ in range(0, 120, 6):
        member = rng.choice(members)
        held.append((member, deliver(member, 6)))
        if rng.random() < 0.5:
            member, delivered = held.pop(rng.randrange(len(held)))
            member.finish(KEY, delivered)
    rng.shuffle(held)
    for member, delivered in held[: len(held) // 2]:
        member.finish(KEY, delivered)
        member.finish(KEY, delivered)  # delivered twice
    run_until_done(members[0], 120)  # and the rest is claimed
    check(client, entries)


def test_text_that_was_deleted_is_missed(client):
    add(client, some_entries(10))
    dead, heir = make_consumer(client, "dead"), make_consumer(client, "heir")
    deliver(dead, 10)
    client.xdel(KEY, "4-1")
    with pytest.raises(example.LostText, match="entry 4-1"):
        heir.step(block_ms=10)
    assert client.hget(f"{{{KEY}}}:state", "last") is None


# The documentation


def test_the_recipe(port, client, tmp_path):
    need("bash", "redis-cli")
    shutil.copy(DOCS / "redis_consumer.py", tmp_path)
    [(script, shown)] = blocks("redis.md", "sh")
    assert run_shell(script.replace("6379", str(port)), tmp_path) == shown
    [(code, _)] = blocks("redis.md", "python")
    names = {}
    exec(code.replace("6379", str(port)), names)
    assert names["ids"].tolist() == [15339, 1917]
    names["client"].close()
