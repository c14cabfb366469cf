"""Who may encode next, of the clients whose text could not be encoded at once."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol


class Waiting(Protocol):
    """One that waits for its turn."""

    def take_turn(self) -> bool: ...


class Turns:
    """A queue from which the event loop takes one in each of its rounds.

    Not all of them in each round: a round is what any other client waits for, several times until
    it is connected, read and answered. So it takes the time of one turn, however many wait.
    """

    def __init__(self) -> None:
        self._queue: deque[Waiting] = deque()
        self._loop = asyncio.get_running_loop()
        self._is_coming = False

    def ask(self, one: Waiting) -> None:
        """Have its `take_turn` called, after those that have asked before."""
        self._queue.append(one)
        self._come()

    def _come(self) -> None:
        if self._queue and not self._is_coming:
            self._is_coming = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        self._is_coming = False
        try:
            # Whoever has nothing to do any more costs no round.
            while self._queue and not self._queue.popleft().take_turn():
                pass
        finally:
            self._come()
