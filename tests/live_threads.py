"""Threads of tests: calls at the same time, threads that run still, systems that give none."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from streamtok import threads


def together(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls give, one thread each, all of them at the same time and often in turns.

    Raises what one of them raises.
    """
    start = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            start.wait()
            results[number] = calls[number]()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)  # seconds; other threads get their turn a thousand times as often
    try:
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if failures:
        raise failures[0]
    return results


def refused(work: Callable[[], Any], arguments: tuple[()]) -> int:
    raise RuntimeError("can't start new thread")


def stillborn(work: Callable[[], Any], arguments: tuple[()]) -> int:
    """As where a new thread finds no memory for its first step."""
    return 1


class Threads:
    """Counts the threads of `Helper` that are alive."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._alive: set[int] = set()
        real = threads.start_new_thread

        def start(work: Callable[[], Any], arguments: tuple[()]) -> int:
            key = id(work)

            def run() -> None:
                try:
                    work()
                finally:
                    self._alive.remove(key)

            self._alive.add(key)
            return real(run, arguments)

        monkeypatch.setattr(threads, "start_new_thread", start)

    def left(self, expected: int = 0) -> int:
        """How many there are, once they are as many as expected, or a while has gone by."""
        end = time.monotonic() + 20
        while len(self._alive) != expected and time.monotonic() < end:
            time.sleep(0.001)
        return len(self._alive)
