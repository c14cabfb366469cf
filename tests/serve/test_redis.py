"""docs/redis_consumer.py with a real redis-server: every id exactly once, whatever dies."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.client import Pipeline

import streamtok

from ..doc_blocks import DOCS, blocks, module_at, need, run_shell
from . import redis_servers
from .redis_servers import SCRIPT, RedisServer, make_entries, offline, stored

pytestmark = pytest.mark.skipif(os.name != "posix", reason="redis-server and signals")
example = module_at(SCRIPT)
ENCODING = streamtok.get_encoding("gpt2")
KEY = "log"


def need_redis() -> None:
    need("redis-server")
    shown = subprocess.run(["redis-server", "--version"], capture_output=True, check=True).stdout
    if int(shown.partition(b"v=")[2].partition(b".")[0]) < 7:
        need("redis-server of version 7 or newer")  # which no program is called


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    need_redis()
    with redis_servers.redis_server() as server:
        yield server


@pytest.fixture
def client(server: RedisServer) -> Iterator[redis.Redis]:
    client = server.client()
    client.flushall()
    yield client
    client.close()


def make_consumer(client: redis.Redis, name: str, **settings: Any) -> Any:
    settings = {"min_idle_ms": 0, "count": 4, **settings}
    consumer = example.Consumer(client, ENCODING, [KEY], group="ids", name=name, **settings)
    consumer.create_groups()
    return consumer


def add(client: redis.Redis, entries: list[redis_servers.Entry], first: int = 1) -> None:
    for i, entry in enumerate(entries, first):
        client.xadd(KEY, entry, id=f"{i}-1")  # type: ignore[arg-type]


def some_entries(count: int, seed: int = 1) -> list[redis_servers.Entry]:
    return [*itertools.islice(make_entries(seed), count - 1), {"text": b"", "end": b"1"}]


def deliver(consumer: Any, count: int) -> list[bytes]:
    """Entries given to a consumer that does nothing with them for now."""
    reply = consumer.client.xreadgroup("ids", consumer.name, {KEY: ">"}, count)
    return [entry for entry, _ in reply[0][1]]


def check(client: redis.Redis, entries: list[redis_servers.Entry]) -> None:
    """All entries are encoded and acknowledged, and the ids are those of the whole texts."""
    assert redis_servers.is_done(client, KEY, f"{len(entries)}-1")
    assert stored(client, KEY) == offline(ENCODING, entries)


def run_until_done(consumer: Any, last: int) -> None:
    for _ in range(1000):
        consumer.claim_at = 0.0
        consumer.step(block_ms=10)
        if redis_servers.is_done(consumer.client, KEY, f"{last}-1"):
            return
    raise AssertionError("the consumer does not get to the end")


class Died(BaseException):
    """The process was killed here."""


@pytest.mark.parametrize("point", ["delivered", "encoded", "before", "after", "connection"])
@pytest.mark.parametrize("nth", [1, 7])
def test_death_at_each_point(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch, point: str, nth: int
) -> None:
    """Between delivery and the end of the nth transaction; the next consumer takes over."""
    entries = some_entries(60)
    add(client, entries)
    calls = itertools.count(1)
    execute, multi = Pipeline.execute, Pipeline.multi

    def die_at(now: str) -> None:
        if point == now and next(calls) == nth:
            raise Died

    def patched_multi(self: Any) -> None:
        die_at("encoded")
        multi(self)

    def patched_execute(self: Any, *args: Any, **settings: Any) -> Any:
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


def test_deliveries_in_any_order(client: redis.Redis) -> None:
    rng = random.Random(1)
    entries = some_entries(120)
    add(client, entries)
    members = [make_consumer(client, f"member {i}") for i in range(4)]
    held: list[tuple[Any, list[bytes]]] = []
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


def test_text_that_was_deleted_is_missed(client: redis.Redis) -> None:
    add(client, some_entries(10))
    dead, heir = make_consumer(client, "dead"), make_consumer(client, "heir")
    deliver(dead, 10)
    client.xdel(KEY, "4-1")
    with pytest.raises(example.LostText, match="entry 4-1"):
        heir.step(block_ms=10)
    assert client.hget(f"{{{KEY}}}:state", "last") is None


# The documentation


def test_the_recipe(server: RedisServer, client: redis.Redis, tmp_path: Path) -> None:
    need("bash", "redis-cli")
    shutil.copy(DOCS / "redis_consumer.py", tmp_path)
    [(script, shown)] = blocks("redis.md", "sh")
    assert run_shell(script.replace("6379", str(server.port)), tmp_path) == shown
    [(code, _)] = blocks("redis.md", "python")
    names: dict = {}
    exec(code.replace("6379", str(server.port)), names)
    assert names["ids"].tolist() == [15339, 1917]
    names["client"].close()
