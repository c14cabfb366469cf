"""The threads that a test has started and that run still, and systems that give no threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from streamtok.parallel import threads


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
