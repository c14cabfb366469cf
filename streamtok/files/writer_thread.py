"""A thread that writes and hashes behind the one that encodes.

The system's `write`, `hashlib` and the encoder all work without the GIL, so that the disk costs
nothing where a core is free. Jobs are done one after the other, in the order in which they came.
Nothing here knows what they do.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

LIMIT = 1 << 20  # bytes that may wait: some blocks


class Behind:
    """One thread, which begins with the first job and ends with `close`.

    After a job has failed no other one is done: `do` and `wait` raise what it raised, each time. A
    signal's exception may leave any of the calls; `close` is possible then.
    """

    def __init__(self, limit: int = LIMIT):
        """limit: bytes that may wait, beyond the block that comes last."""
        self._limit = limit
        self._jobs: deque[tuple[Callable[[], None], int]] = deque()
        self._size = 0  # bytes of the jobs that are not done
        self._error: BaseException | None = None
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def do(self, job: Callable[[], None], size: int) -> None:
        """Have the job done soon; size: bytes that it holds. Waits while too many do.

        Raises what an earlier job raised.
        """
        with self._changed:
            while self._size > self._limit and self._error is None:
                self._changed.wait()
            self._raise()
            if self._thread is None and not self._begin():
                job()
                return
            self._jobs.append((job, size))
            self._size += size
            self._changed.notify_all()

    def _begin(self) -> bool:
        """Whether there is a thread now: the system may have no room for one."""
        self._is_closing = False
        thread = threading.Thread(target=self._run, name="streamtok-write", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        return True

    def wait(self) -> None:
        """Return when all jobs are done. Raises what one of them raised."""
        with self._changed:
            while self._size and self._error is None:
                self._changed.wait()
            self._raise()

    def close(self) -> None:
        """End the thread: the job that has begun is done, what waits is dropped. Raises nothing."""
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
        while True:
            with self._changed:
                while not (self._jobs or self._is_closing):
                    self._changed.wait()
                if self._is_closing:
                    return
                job, size = self._jobs.popleft()
            try:
                job()
            except BaseException as error:
                with self._changed:
                    self._error = error
                    self._jobs.clear()
                    self._changed.notify_all()
                return
            del job  # and the block that it holds
            with self._changed:
                self._size -= size
                self._changed.notify_all()
