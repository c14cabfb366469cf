"""Tasks on several threads, whose results come out in the order in which the tasks went in.

The thread that owns an `OrderedPool` adds tasks and takes results, and while it waits it does
tasks that are not begun. So there is one helper less than there are threads, nobody is idle while
there is work, and with one thread everything happens where it is called.
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
    """work: called once, in any thread. owner: whose it is, for errors."""

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
        self.work = None  # and what it holds

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


class OrderedPool(Generic[Result, Owner]):
    """The tasks of one owner: only `close` may be called from another thread."""

    def __init__(self, num_threads: int = 1):
        """num_threads: that work, the owner's among them. ValueError if not positive."""
        self.num_threads = check_threads(num_threads)
        self._tasks: deque[Task[Result, Owner]] = deque()  # in order
        self._waiting: deque[Task[Result, Owner]] = deque()  # those that are not begun
        self._changed = threading.Condition()
        self._helpers: list[Helper] = []
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, work: Callable[[], Result], owner: Owner) -> None:
        """Let a thread call `work`; the first task also starts the helpers."""
        task: Task[Result, Owner] = Task(work, owner)
        self._tasks.append(task)
        with self._changed:
            self._waiting.append(task)
            self._changed.notify()
        while len(self._helpers) < min(self.num_threads - 1, len(self._tasks) - 1):
            helper = Helper(self._help)
            self._helpers.append(helper)  # first: a signal handler may raise once it has started
            if not helper.start():  # the system gives no more
                self.num_threads = len(self._helpers)
                break

    def add_done(self, result: Result, owner: Owner) -> None:
        """A task that needs no work."""
        task: Task[Result, Owner] = Task(lambda: result, owner)
        task.run()
        task.is_done = True
        self._tasks.append(task)

    @property
    def is_first_done(self) -> bool:
        """Whether `take` would return at once."""
        return bool(self._tasks) and self._tasks[0].is_done

    @property
    def owner(self) -> Owner:
        """The owner of the next task whose result is taken; there must be one."""
        return self._tasks[0].owner

    def take(self) -> Result:
        """The result of the first task, which is gone then. Raises what its work raised."""
        first = self._tasks[0]
        while not first.is_done:
            with self._changed:
                task = self._waiting.popleft() if self._waiting else None
                if task is None and not first.is_done:
                    self._changed.wait()
            if task is not None:
                task.run()
                task.is_done = True
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
                task.is_done = True
                self._changed.notify_all()

    def close(self) -> None:
        """Forget all tasks and end the helpers; returns when they have."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()
        for helper in self._helpers:
            helper.join()
        self._helpers.clear()
        self._tasks.clear()
        self._is_closed = False
