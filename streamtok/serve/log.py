"""Lines on standard error that nobody waits for: not the event loop, and not the end."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import threading
import time

_WAITING = 64  # lines that may wait to be written; more are counted and left out
_EVERY = 1.0  # seconds in which at most one record of the logging library is written
_PATIENCE = 1.0  # seconds that the end waits for who reads the lines


class Log(logging.Handler):
    """Writes lines from a thread of its own, as well as records of the logging library.

    Standard error may be a pipe that is full and that nobody reads. Writing to it blocks, and a
    loop that is blocked serves nobody and hears no signal. So only the thread waits. What is too
    much is left out: lines beyond those that wait, and records within a second of another one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._left_out = 0
        self._last_record: float | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._write_lines, name="log", daemon=True)
        self._thread.start()

    def __enter__(self) -> Log:
        """What asyncio complains of goes here inside the block."""
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
        """Write a line, or count it as left out if too many wait."""
        left_out = self._left_out
        note = f"streamtok: {left_out} messages were left out\n" if left_out else ""
        try:
            self._lines.put_nowait(f"{note}streamtok: {text}\n")
        except queue.Full:
            self._left_out += 1
        else:
            self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record with its traceback, unless there was one a moment ago."""
        now = time.monotonic()
        if self._last_record is not None and now - self._last_record < _EVERY:
            self._left_out += 1
            return
        self._last_record = now
        with contextlib.suppress(Exception):  # a record that cannot be formatted
            self.say(self.format(record))

    def close(self) -> None:
        """Wait a moment for the lines to be written."""
        if self._is_closed:  # the logging library closes each handler at the end, too
            return
        self._is_closed = True
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=_PATIENCE)
        self._thread.join(_PATIENCE)
        super().close()

    def _write_lines(self) -> None:
        while (line := self._lines.get()) is not None:
            with contextlib.suppress(OSError, ValueError):  # nobody may be listening
                _write(line)


def _write(line: str) -> None:
    error = sys.stderr
    if error is None:  # the descriptor was closed
        return
    try:
        descriptor = error.fileno()
    except (OSError, AttributeError):  # no file, as in tests
        error.write(line)
        return
    # Not through the file object: the interpreter cannot end while a thread waits inside one.
    data = line.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(descriptor, data) :]
