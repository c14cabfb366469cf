"""Prints how many tokens came in each interval, while inputs are read.

The lines are printed by the thread that counts, whenever it looks for more text: several times a
second. So a closed pipe and a signal end the command as they do elsewhere.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import Iterator

from ..jobs.sources import Waiting
from .messages import print_now


class Intervals:
    """Takes counts as they come. Each interval ends with a line.

    The intervals begin at once, or where a file is followed when it has been read to its end once;
    the line before the first then has what the file had until then.
    """

    def __init__(
        self,
        every: float,
        is_json: bool,
        waiting: Waiting,
        is_followed: bool,
    ):
        """every: seconds. waiting: a context in which the process may wait, and be stopped."""
        self._every = every
        self._is_json = is_json
        self._waiting = waiting
        self._total = 0
        self._said = 0  # of the total
        # When the interval began; None before the first.
        self._began: float | None = None if is_followed else time.monotonic()
        self._due = 0.0 if self._began is None else self._began + every
        self._has_waited = False  # and has been idle since
        if not is_json:
            print_now(f"{'time':<8} {'tokens':>8} {'total':>10}")

    @contextlib.contextmanager
    def waiting(self) -> Iterator[float | None]:
        """As the context `waiting`, after the lines that are due; gives when the next one is."""
        now = time.monotonic()
        if self._began is None and self._has_waited:  # the file is read to its end
            self._began, self._due = now, now + self._every
            self._say(0.0)
        self._has_waited = True
        self._say_due(now)
        with self._waiting():
            yield None if self._began is None else max(self._due - time.monotonic(), 0.0)

    def add(self, tokens: int) -> None:
        """Count some tokens."""
        self._total += tokens
        self._has_waited = False
        self._say_due(time.monotonic())

    def finish(self) -> None:
        """Print what came since the last line."""
        now = time.monotonic()
        self._say(0.0 if self._began is None else now - self._began)

    def _say_due(self, now: float) -> None:
        if self._began is None or now < self._due:
            return
        self._say(now - self._began)
        self._began = now
        # A computer that slept has missed some.
        self._due = max(self._due + self._every * (1 + (now - self._due) // self._every), now)

    def _say(self, seconds: float) -> None:
        tokens, self._said = self._total - self._said, self._total
        now = datetime.datetime.now().astimezone()
        if self._is_json:
            row = {"time": now.isoformat(timespec="seconds"), "seconds": round(seconds, 3)}
            print_now(json.dumps(row | {"tokens": tokens, "total": self._total}))
        else:
            print_now(f"{now:%H:%M:%S} {tokens:>8} {self._total:>10}")
