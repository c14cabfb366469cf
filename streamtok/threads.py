"""A writer thread, calls in several threads at once, and cached properties without locks."""

from __future__ import annotations

import operator
import os
import sys
import threading
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

# A thread that runs jobs such as writing and hashing while the caller continues to encode.
#
# The system's `write` and `fsync`, `hashlib` and the encoder all release the GIL, so writing does
# not slow down encoding if a core is free. Jobs run one after another, in the order of submission.

LIMIT = 1 << 22  # bytes in the queue: about ten blocks
_WORTH_WAKING = 1 << 20  # bytes: waking a thread costs a system call, and the GIL twice


class WriterThread:
    """One thread, started by the first job and ended by `close`.

    Small jobs may be delayed until there are more of them, or until `wait`. After a job has failed,
    no further job runs, and every `submit` and `wait` raises its exception. A signal handler may
    raise inside any of the calls; `close` still works afterwards.
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

        Raises the exception of an earlier job. Runs the job itself if no thread can be started.
        """
        with self._changed:
            while self._size > self._limit and self._error is None:
                self._changed.wait()
            self._raise()
            if self._thread is None:
                self._is_closing = False
                self._thread = Helper(self._run)
                self._has_thread = self._thread.begin()
            if not self._has_thread:
                job()
                return
            self._jobs.append((job, size))
            self._size += size
            if self._size > min(self._limit, _WORTH_WAKING):
                self._changed.notify_all()

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


# `cached_property` without the lock that functools' has before Python 3.12.
#
# All objects of a class share that lock. If a process is forked while another thread holds it, the
# child waits forever for the property of any object. Without the lock, two threads may both compute
# the value, with equal results.

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:
        """See `functools.cached_property`."""

        def __init__(self, function: Any) -> None:
            self.func = function
            self.attrname: Any = None
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: Any, name: str) -> None:
            self.attrname = name

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


__all__ = ["cached_property"]


# Running functions in several threads.

_PATIENCE = 1.0  # seconds: a thread starts in 0.1 ms, or a few times that on a busy machine
Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    """int: the cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Helper:
    """A thread that can be started without waiting for it.

    `threading.Thread.start` waits until the thread reports that it has begun. If memory runs out, a
    thread can die before that, and the caller would wait forever.
    """

    __slots__ = ("_begun", "_ended", "_owner", "_work")

    def __init__(self, work: Callable[[], object]) -> None:
        """work: called in the thread; must not raise."""
        self._work = work
        self._owner: dict[str, str] = {}  # whether "caller" or "thread" is set first decides
        self._begun, self._ended = allocate_lock(), allocate_lock()
        self._begun.acquire()
        self._ended.acquire()

    def start(self) -> bool:
        """Start the thread, once. False if the system refuses."""
        try:
            start_new_thread(self._run, ())
        except (RuntimeError, MemoryError):
            return False
        return True

    def begin(self) -> bool:
        """Start the thread; return whether it began within a second: if not, it never will."""
        if self.start():
            self._begun.acquire(timeout=_PATIENCE)
        return self._owner.setdefault("by", "caller") == "thread"

    def _run(self) -> None:
        if self._owner.setdefault("by", "thread") == "thread":
            try:
                self._begun.release()
                self._work()
            finally:
                self._ended.release()

    def join(self) -> None:
        """Wait until the work is done, unless it will never begin. May be called again."""
        if self._owner.setdefault("by", "caller") == "thread":
            with self._ended:
                pass


def run_in_threads(
    work: Callable[[], None], num_threads: int, stop: Callable[[], None] = lambda: None
) -> None:
    """Call `work` in up to num_threads threads at the same time, including this one.

    If a call raises, `stop` is called so that the others return soon. When all have returned, one
    of the exceptions is raised.
    """
    num_threads = check_threads(num_threads)
    errors: list[BaseException] = []

    def help_out() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
            stop()

    helpers = [Helper(help_out) for _ in range(num_threads - 1)]
    try:
        for helper in helpers:
            if not helper.start():
                break
        work()
        for helper in helpers:
            helper.join()
    except BaseException:
        stop()
        raise
    finally:
        for helper in helpers:
            helper.join()
    if errors:
        raise errors[0]


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], num_threads: int
) -> list[Result]:
    """list: function(item) for each item, in order. This thread makes the first call.

    After a failure no more calls begin; when all running ones have returned, the exception of the
    first failed item is raised. Raises ValueError if num_threads is not positive. A thread takes
    0.1 ms to start.
    """
    num_threads = check_threads(num_threads)
    if num_threads == 1 or len(items) < 2:
        return [function(item) for item in items]
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    left = deque(range(1, len(items)))
    here = threading.get_ident()

    def call(i: int) -> None:
        try:
            results[i] = function(items[i])
        except BaseException as error:
            errors[i] = error
            left.clear()  # calls for earlier items have begun

    def work() -> None:
        if threading.get_ident() == here:
            call(0)
        while left:
            try:
                i = left.popleft()
            except IndexError:  # another thread was faster
                return
            call(i)

    run_in_threads(work, min(num_threads, len(items)), left.clear)
    if errors:
        raise errors[min(errors)]
    return [results[i] for i in range(len(items))]


def check_threads(num_threads: object) -> int:
    """`num_threads` as an int. Raises ValueError unless it is a positive integer."""
    try:
        number = operator.index(num_threads)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1 or isinstance(num_threads, bool):
        raise ValueError(f"num_threads must be a positive integer, not {num_threads!r}")
    return number
