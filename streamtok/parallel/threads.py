"""Threads: how many, and functions that run in several at the same time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["check_threads", "map_in_threads", "run_in_threads", "usable_cores"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    """int: the cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def run_in_threads(
    work: Callable[[], None], num_threads: int, stop: Callable[[], None] = lambda: None
) -> None:
    """Call `work` in up to num_threads threads at the same time, this one among them.

    Raises what it raises in one of them, when all are back. `stop` is called before that, so that
    they come back soon.
    """
    errors: list[BaseException] = []

    def help_out() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
            stop()

    threads: list[threading.Thread] = []
    try:
        for _ in range(num_threads - 1):
            thread = threading.Thread(target=help_out)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more
                break
            threads.append(thread)
        work()
        for thread in threads:
            thread.join()
    except BaseException:
        stop()
        raise
    finally:
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], num_threads: int
) -> list[Result]:
    """list: function(item) for each, in order. Raises what the first that fails raises.

    ValueError if num_threads is not positive.
    """
    check_threads(num_threads)
    if num_threads == 1 or len(items) < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(num_threads, len(items))) as pool:
        return list(pool.map(function, items))


def check_threads(num_threads: int) -> None:
    if num_threads <= 0:
        raise ValueError(f"num_threads must be positive, not {num_threads}")
