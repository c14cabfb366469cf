"""Threads: how many, and functions that run in several at the same time."""

from __future__ import annotations

import collections
import errno
import operator
import os
import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Sequence
from typing import TypeVar

_PATIENCE = 1.0  # seconds: a thread begins in 0.1 ms, or a few times that on a busy machine
Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    """int: the cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Helper:
    """A thread whose start is not awaited.

    `threading.Thread.start` waits until the thread says that it has begun. Where memory ends, a
    thread can end before it can say that, and the caller would wait forever.
    """

    __slots__ = ("_begun", "_ended", "_owner", "_work")

    def __init__(self, work: Callable[[], object]) -> None:
        """work: is called in the thread, and raises nothing."""
        self._work = work
        self._owner: dict[str, str] = {}  # the first who puts himself in decides
        self._begun, self._ended = allocate_lock(), allocate_lock()
        self._begun.acquire()
        self._ended.acquire()

    def start(self) -> bool:
        """Start the thread, once. False if the system gives none."""
        try:
            start_new_thread(self._run, ())
        except (RuntimeError, MemoryError):
            return False
        return True

    def begin(self) -> bool:
        """Start the thread, and say whether it has begun. If not within a second, it never will."""
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
        """Return when the work is done, or will never begin. May be called again."""
        if self._owner.setdefault("by", "caller") == "thread":
            with self._ended:
                pass


def start_thread(work: Callable[[], object]) -> None:
    """Call `work`, which raises nothing, in a thread that no process waits for when it ends.

    Raises OSError if the system gives no thread.
    """
    if not Helper(work).begin():
        raise OSError(errno.EAGAIN, "the system gives no further thread")


def run_in_threads(
    work: Callable[[], None], num_threads: int, stop: Callable[[], None] = lambda: None
) -> None:
    """Call `work` in up to num_threads threads at the same time, this one among them.

    Raises what it raises in one of them, when all are back. `stop` is called before that, so that
    they come back soon.
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
    """list: function(item) for each, in order. This thread makes the first call.

    Raises what the first that fails raises, when all that have begun are back; ValueError if
    num_threads is not positive. A thread takes 0.1 ms to start.
    """
    num_threads = check_threads(num_threads)
    if num_threads == 1 or len(items) < 2:
        return [function(item) for item in items]
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    left = collections.deque(range(1, len(items)))
    here = threading.get_ident()

    def call(i: int) -> None:
        try:
            results[i] = function(items[i])
        except BaseException as error:
            errors[i] = error
            left.clear()  # those before this one have begun

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
