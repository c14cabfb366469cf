"""Cases in several processes: one that crashes or hangs is a find, and the others go on.

Worker k of n does each n-th seed, beginning with the k-th, and sends an outcome for each through a
pipe of its own. So the first seed without an outcome is the one at which a worker ended.
"""

from __future__ import annotations

import collections
import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable, Generator
from multiprocessing.connection import Connection, wait
from pathlib import Path

from .checks import Difference, Outcome, check_seed

SILENCE = 600.0  # seconds: a case that takes longer hangs

Check = Callable[[int, Path], Outcome]
_CONTEXT = multiprocessing.get_context("spawn")  # the same on each platform


def outcomes_here(seeds: range, check: Check = check_seed) -> Generator[Outcome]:
    """The outcome of each seed, in order, from this process."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            yield check(seed, Path(folder))


def outcomes_of_workers(
    seeds: range, workers: int, check: Check = check_seed, silence: float = SILENCE
) -> Generator[Outcome]:
    """The outcome of each seed, in any order.

    Where a worker ended or hung, the outcome has a difference of the kind "lost" and no file.
    `check` is pickled.
    """
    running: dict[Connection, _Worker] = {}

    def start(part: range) -> None:
        if part:
            worker = _Worker(part, check)
            running[worker.pipe] = worker

    try:
        for number in range(workers):
            start(seeds[number::workers])
        while running:
            ready = wait(list(running), timeout=min(silence, 5))
            for pipe, worker in list(running.items()):
                if pipe in ready:
                    outcome = worker.next_outcome()
                elif time.monotonic() - worker.heard > silence:
                    outcome = worker.lost(f"no outcome within {silence:g} s")
                else:
                    continue
                if not worker.waiting or worker.has_ended:
                    del running[pipe]
                    worker.stop()
                    start(worker.waiting)
                yield outcome
    finally:
        for worker in running.values():
            worker.stop()


class _Worker:
    """A process that checks `waiting`, one seed after the other."""

    def __init__(self, seeds: range, check: Check) -> None:
        self.waiting = seeds  # those without an outcome
        self.has_ended = False
        self.heard = time.monotonic()  # when there was the last outcome
        self.pipe, end = _CONTEXT.Pipe(duplex=False)
        self.process = _CONTEXT.Process(target=_work, args=(seeds, check, end), daemon=True)
        self.process.start()
        end.close()  # so that only the worker has it, and its end is seen

    def next_outcome(self) -> Outcome:
        """Waits for it."""
        try:
            outcome: Outcome = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            return self.lost(f"the worker ended with {how}")
        self.heard = time.monotonic()
        self.waiting = self.waiting[1:]
        return outcome

    def lost(self, why: str) -> Outcome:
        """The outcome of the seed at which the worker is."""
        seed, self.waiting, self.has_ended = self.waiting[0], self.waiting[1:], True
        counts = collections.Counter({"files": 1, "different": 1})
        return Outcome(seed, counts, difference=Difference("lost", "", "an outcome", why))

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()


def _work(seeds: range, check: Check, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends its workers
    for outcome in outcomes_here(seeds, check):
        pipe.send(outcome)
