"""Lets signals stop the process only while no output is partly written."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


class Signals:
    """Turns SIGINT, SIGTERM and SIGHUP into `Stopped`, raised when no output is partly written.

    A second signal takes effect immediately, in case the reader of the output is stuck. Signals
    that are already handled or ignored (`nohup`) keep their handlers.
    """

    class Stopped(BaseException):
        def __init__(self, number: int):
            super().__init__(number)
            self.number = number

    class Paused(Stopped):
        """Stopped while waiting for input: all earlier output is written and can be completed."""

    def __init__(self) -> None:
        self._is_held = False
        self._is_waiting = False  # inside `heard`
        self._waiting: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                if number is None:
                    continue
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        is_first = self._waiting is None
        self._waiting = number
        if not is_first:
            raise self.Stopped(number)
        if not self._is_held:
            raise self.Paused(number) if self._is_waiting else self.Stopped(number)

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Let signals stop the process inside this block; later signals wait for the next block.

        A signal may interrupt the block anywhere, so the block must not consume input: wait in it
        until there is something to read, and read afterwards.
        """
        # The order matters: a signal between two of these lines must wait or raise `Paused`.
        self._is_waiting = True
        try:
            self._is_held = False
            if self._waiting is not None:
                raise self.Paused(self._waiting)
            yield
        finally:
            self._is_held = True
            self._is_waiting = False
