"""Writes lines to standard error without blocking the event loop or the end of the process."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import threading
import time

from ..files.named_errors import printable
from ..parallel.threads import start_thread

_WAITING = 64  # lines in the queue; further lines are dropped and counted
_EVERY = 1.0  # seconds; at most one record of the logging library is written in this time
_PATIENCE = 1.0  # seconds that `close` waits for the lines to be read


class Log(logging.Handler):
    """Writes lines, and records of the logging library, from a thread of its own.

    Standard error may be a full pipe that nobody reads. Writing to it blocks, and a blocked event
    loop serves nobody and handles no signal. So only the thread waits. The log drops lines when the
    queue is full, and records that follow another within a second.
    """

    def __init__(self) -> None:
        """Raises OSError if the system gives no thread."""
        super().__init__()
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._left_out = 0
        self._last_record: float | None = None
        self._is_closed = False
        self._has_ended = threading.Event()
        start_thread(self._write_lines)

    def __enter__(self) -> Log:
        """Take the records of asyncio's logger inside the block."""
        logger = logging.getLogger("asyncio")
        self._propagates = logger.propagate
        logger.addHandler(self)
        logger.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger("asyncio")
        logger.removeHandler(self)
        logger.propagate = self._propagates
        self.close()

    def say(self, text: str) -> None:
        """Queue a line, or drop and count it if the queue is full."""
        left_out = self._left_out
        note = f"streamtok: {left_out} messages were left out\n" if left_out else ""
        try:
            self._lines.put_nowait(f"{note}streamtok: {printable(text)}\n")
        except queue.Full:
            self._left_out += 1
        else:
            self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record with its traceback, unless there was one within the last second."""
        now = time.monotonic()
        if self._last_record is not None and now - self._last_record < _EVERY:
            self._left_out += 1
            return
        self._last_record = now
        with contextlib.suppress(Exception):  # a record that cannot be formatted
            self.say(self.format(record))

    def close(self) -> None:
        """Wait up to a second for the lines to be written."""
        if self._is_closed:  # the logging library closes each handler at exit, too
            return
        self._is_closed = True
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=_PATIENCE)
        self._has_ended.wait(_PATIENCE)
        super().close()

    def _write_lines(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                with contextlib.suppress(OSError, ValueError):  # it may be closed
                    _write(line)
        finally:
            self._has_ended.set()


def _write(line: str) -> None:
    error = sys.stderr
    if error is None:  # the descriptor was closed
        return
    try:
        descriptor = error.fileno()
    except (OSError, AttributeError):  # not a real file, as in tests
        error.write(line)
        return
    # Not through the file object: the interpreter cannot exit while a thread waits inside one.
    data = line.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(descriptor, data) :]
