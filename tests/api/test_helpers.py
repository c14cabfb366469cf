"""Threads that the system does not give, or that end before they begin: nobody waits for them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import streamtok
from streamtok import threads
from streamtok.engines import texts
from streamtok.jobs.ordered_pool import OrderedPool
from streamtok.training import counting

from ..live_threads import refused, stillborn
from ..new_process import python


@pytest.mark.parametrize("start", [refused, stillborn])
def test_work_is_done_here(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "start_new_thread", start)
    monkeypatch.setattr(texts, "usable_cores", lambda: 4)
    monkeypatch.setattr(texts, "PER_THREAD", 10)
    monkeypatch.setattr(texts, "LARGE", 1000)
    monkeypatch.setattr(texts, "PART", 100)
    monkeypatch.setattr(counting, "LARGE", 64)
    enc = streamtok.get_encoding("gpt2")
    batch = ["some words " * n for n in range(1, 200)]
    ids = [enc.encode(text) for text in batch]
    assert enc.encode_batch(batch, num_threads=4) == ids
    assert enc.decode_batch(ids, num_threads=4) == batch
    trainer, other = (streamtok.Trainer("gpt2", num_threads=n) for n in (4, 1))
    for one in (trainer, other):
        one.update("".join(batch), final=True)
        one.update_documents(batch)
    assert list(trainer.piece_counts().items()) == list(other.piece_counts().items())
    pool: OrderedPool[int, None] = OrderedPool(4)
    for number in range(9):
        pool.add(lambda number=number: number * number, None)
    assert [pool.take() for _ in range(9)] == [n * n for n in range(9)]
    pool.close()


def test_a_thread_that_begins_too_late_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[Callable[[], None]] = []
    monkeypatch.setattr(threads, "start_new_thread", lambda work, _: late.append(work))
    monkeypatch.setattr(threads, "_PATIENCE", 0.01)
    done: list[int] = []
    helper = threads.Helper(lambda: done.append(1))
    assert not helper.begin()
    late[0]()
    assert done == []
    helper.join()
    monkeypatch.undo()
    helper = threads.Helper(lambda: done.append(1))
    assert helper.begin()
    helper.join()
    assert done == [1]


TIGHT = """
import resource, streamtok, sys
from streamtok.engines import texts
texts.usable_cores = lambda: 16
texts.PER_THREAD = 100
enc = streamtok.get_encoding("gpt2")
batch = ["some words of a text " * 50] * 300
ids = enc.encode_batch(batch, num_threads=16)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for room in range(0, 40_000_000, 400_000):
    resource.setrlimit(resource.RLIMIT_AS, (used + room, -1))
    try:
        assert enc.encode_batch(batch, num_threads=16) == ids
    except MemoryError:
        pass
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and limits of address space")
def test_a_tight_limit_of_memory_ends_in_an_answer() -> None:
    assert python(TIGHT, timeout=120) == "done\n"
