"""Runs tasks on several threads and returns their results in the order of submission.

The thread that owns an `OrderedPool` adds tasks and takes results. While it waits, it runs tasks
that have not started, so it counts as one of the threads. No thread is idle while there is work,
and with one thread everything runs in the caller's thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from ..threads import Helper, check_threads

Result = TypeVar("Result")
Owner = TypeVar("Owner")


class Task(Generic[Result, Owner]):
    """A task. work: called once, in any thread. owner: identifies the task's text, for errors."""

    __slots__ = ("_error", "_result", "is_done", "owner", "work")

    def __init__(self, work: Callable[[], Result], owner: Owner):
        self.work: Callable[[], Result] | None = work
        self.owner = owner
        self.is_done = False
        self._result: Result | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        assert self.work is not None
        try:
            self._result = self.work()
        except BaseException as error:
            self._error = error
        self.work = None  # frees the text that it holds
        self.is_done = True

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


class OrderedPool(Generic[Result, Owner]):
    """A queue of tasks. Threads other than the one that owns it may only call `close`."""

    def __init__(self, num_threads: int = 1):
        """num_threads: number of working threads, including the owner's.

        Raises ValueError unless it is positive.
        """
        self.num_threads = check_threads(num_threads)
        self._tasks: deque[Task[Result, Owner]] = deque()  # in order
        self._waiting: deque[Task[Result, Owner]] = deque()  # not started
        self._changed = threading.Condition()
        self._helpers: list[Helper] = []
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, work: Callable[[], Result], owner: Owner) -> None:
        """Queue `work` for any thread. Starts helper threads as the number of tasks grows."""
        task: Task[Result, Owner] = Task(work, owner)
        self._tasks.append(task)
        with self._changed:
            self._waiting.append(task)
            self._changed.notify()
        while len(self._helpers) < min(self.num_threads - 1, len(self._tasks) - 1):
            helper = Helper(self._help)
            self._helpers.append(helper)  # first: a signal handler may raise once it has started
            if not helper.start():  # the system allows no more threads
                self.num_threads = len(self._helpers)
                break

    def add_done(self, result: Result, owner: Owner) -> None:
        """Append a result that needs no work."""
        task: Task[Result, Owner] = Task(lambda: result, owner)
        task.run()
        self._tasks.append(task)

    @property
    def is_first_done(self) -> bool:
        """Whether `take` would return without waiting."""
        return bool(self._tasks) and self._tasks[0].is_done

    @property
    def owner(self) -> Owner:
        """The owner of the first task, which must exist."""
        return self._tasks[0].owner

    def take(self) -> Result:
        """Remove the first task and return its result, or raise the exception that it raised."""
        first = self._tasks[0]
        while not first.is_done:
            with self._changed:
                task = self._waiting.popleft() if self._waiting else None
                if task is None and not first.is_done:
                    self._changed.wait()
            if task is not None:
                task.run()
        self._tasks.popleft()
        return first.result()

    def _help(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    return
                task = self._waiting.popleft()
            task.run()
            with self._changed:
                self._changed.notify_all()

    def close(self) -> None:
        """Discard all tasks, end the helper threads and wait for them."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()
        for helper in self._helpers:
            helper.join()
        self._helpers.clear()
        self._tasks.clear()
        self._is_closed = False
