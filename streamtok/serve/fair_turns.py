"""Fair turns for the clients whose text could not be encoded at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class FairTurns:
    """A queue from which each round of the event loop serves one client.

    Not all of them in each round, because other clients wait several rounds to be connected, read
    and answered. A round takes the time of one turn, however many clients are queued.
    """

    def __init__(self) -> None:
        self._queue: deque[Callable[[], bool]] = deque()
        self._loop = asyncio.get_running_loop()
        self._is_scheduled = False

    def ask(self, take_turn: Callable[[], bool]) -> None:
        """Queue a client: `take_turn` is called once, after those queued before.

        It is false if the client has nothing to do any more.
        """
        self._queue.append(take_turn)
        self._schedule()

    def _schedule(self) -> None:
        if self._queue and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._serve_next)

    def _serve_next(self) -> None:
        self._is_scheduled = False
        try:
            # A client that has nothing to do any more does not use up the round.
            while self._queue and not self._queue.popleft()():
                pass
        finally:
            self._schedule()
