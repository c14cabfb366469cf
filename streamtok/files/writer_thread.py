"""A thread that runs jobs such as writing and hashing while the caller goes on encoding.

The system's `write` and `fsync`, `hashlib` and the encoder all release the GIL, so writing takes no
time from encoding where a core is free. Jobs run one after another, in the order in which they were
submitted. This module does not know what a job does.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from ..parallel.threads import Helper

LIMIT = 1 << 22  # bytes in the queue: some ten blocks
_WORTH_WAKING = 1 << 20  # bytes: a sleeping thread costs a system call to wake, and the GIL twice


class WriterThread:
    """One thread, started by the first job and ended by `close`.

    Small jobs may wait until there are more of them, or until `wait`. After a job has failed, no
    further job runs, and every `submit` and `wait` raises its exception. A signal handler may raise
    inside any of the calls; `close` still works afterwards.
    """

    def __init__(self, limit: int = LIMIT):
        """limit: bytes that may be queued, not counting the last block."""
        self._limit = limit
        self._jobs: deque[tuple[Callable[[], None], int]] = deque()
        self._size = 0  # bytes held by unfinished jobs
        self._error: BaseException | None = None
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread: Helper | None = None
        self._has_thread = False

    def submit(self, job: Callable[[], None], size: int) -> None:
        """Queue a job that holds `size` bytes. Blocks while the queue is full.

        Raises the exception of an earlier job. Runs the job at once if no thread can be started.
        """
        with self._changed:
            while self._size > self._limit and self._error is None:
                self._changed.wait()
            self._raise()
            if self._thread is None:
                self._start()
            if not self._has_thread:
                job()
                return
            self._jobs.append((job, size))
            self._size += size
            if self._size > min(self._limit, _WORTH_WAKING):
                self._changed.notify_all()

    def _start(self) -> None:
        self._is_closing = False
        self._thread = Helper(self._run)
        self._has_thread = self._thread.begin()

    def wait(self) -> None:
        """Return when all jobs are done. Raises the exception of a failed job."""
        with self._changed:
            self._changed.notify_all()
            while self._size and self._error is None:
                self._changed.wait()
            self._raise()

    def close(self) -> None:
        """End the thread after the running job and drop the queued ones. Raises nothing."""
        with self._changed:
            self._is_closing = True
            self._jobs.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._size = 0

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._do_jobs()
        except BaseException as error:
            with self._changed:
                self._error = error
                self._jobs.clear()
                self._changed.notify_all()

    def _do_jobs(self) -> None:
        while True:
            with self._changed:
                while not (self._jobs or self._is_closing):
                    self._changed.wait()
                if self._is_closing:
                    return
                job, size = self._jobs.popleft()
            job()
            del job  # frees the block that it holds
            with self._changed:
                self._size -= size
                self._changed.notify_all()
