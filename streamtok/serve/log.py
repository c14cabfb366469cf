"""Writes lines to standard error without blocking the event loop."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import sys
import time

from ..files import printable

_EVERY = 1.0  # seconds; at most one record of the logging library is written in this time
_MAX_LINE = 512  # bytes that a writable pipe accepts without blocking (PIPE_BUF)


class Log(logging.Handler):
    """Writes lines, and records of the logging library.

    Standard error may be a full pipe without a reader. Writing to it would block the event loop,
    which then serves no client and handles no signal. So lines that would block are dropped, as are
    records that follow another one within a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last_record: float | None = None

    def __enter__(self) -> Log:
        """Handle the records of asyncio's logger inside the block."""
        logger = logging.getLogger("asyncio")
        self._propagates = logger.propagate
        logger.addHandler(self)
        logger.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger("asyncio")
        logger.removeHandler(self)
        logger.propagate = self._propagates

    def say(self, text: str) -> None:
        """Write a line, or drop it."""
        line = f"streamtok: {printable(text)}\n".encode("utf-8", "backslashreplace")
        with contextlib.suppress(OSError, ValueError, AttributeError):  # it may be closed
            descriptor = sys.stderr.fileno()
            for at in range(0, len(line), _MAX_LINE):
                if sys.platform != "win32" and not select.select([], [descriptor], [], 0)[1]:
                    break
                os.write(descriptor, line[at : at + _MAX_LINE])

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record with its traceback, unless there was one within the last second."""
        now = time.monotonic()
        if self._last_record is None or now - self._last_record >= _EVERY:
            self._last_record = now
            with contextlib.suppress(Exception):  # a record that cannot be formatted
                self.say(self.format(record))
