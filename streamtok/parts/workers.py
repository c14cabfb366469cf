"""Parts in processes of this machine.

Each worker is a process of its own that reads numbers of parts from its standard input, one a
line, and answers each with a line of JSON. A worker that dies (killed, out of memory) is replaced,
and its part is given out again, at most `ATTEMPTS` times. Bad text is not tried again. If the
process that gives the parts out dies, its workers see the end of their input and leave after their
part.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..errors import PlanError
from .part import Record, run_part
from .plan import Plan

__all__ = ["ATTEMPTS", "run_parts", "run_worker"]

ATTEMPTS = 3
_SHOWN = 5  # errors in a message


def run_parts(
    plan: Plan,
    numbers: Iterable[int],
    workers: int,
    advance: Callable[[Record], None] = lambda record: None,
) -> None:
    """Run parts of a saved plan in `workers` processes; `advance` gets the record of each.

    A part that cannot be encoded does not stop the others: its error is raised at the end. Raises
    PlanError for such parts, and for a part whose worker died three times. However it ends, the
    workers have ended, and what is done stays done.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers must be a positive number, not {workers!r}")
    path = plan.save()
    waiting = deque((number, 0) for number in numbers)
    errors: list[str] = []
    pool = _Pool(path)
    try:
        for _ in range(min(workers, len(waiting))):
            pool.start()
        while waiting or pool.n_busy:
            while waiting and pool.idle:
                pool.give(*waiting.popleft())
            for number, attempt, answer in pool.answers():
                if answer is None:
                    if attempt + 1 >= ATTEMPTS:
                        errors.append(
                            f"part {number}: the process that ran it died {ATTEMPTS} times, "
                            "perhaps for lack of memory"
                        )
                    else:
                        waiting.append((number, attempt + 1))
                    if waiting:
                        pool.start()
                elif "error" in answer:
                    errors.append(answer["error"])
                else:
                    advance(Record.from_json(answer))
    finally:
        pool.close()
    if errors:
        more = f"\nand {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
        raise PlanError("\n".join(errors[:_SHOWN]) + more)


class _Worker:
    def __init__(self, path: str):
        # The package may have been found through a changed sys.path.
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        known = os.environ.get("PYTHONPATH")
        paths = os.pathsep.join([root, known] if known else [root])
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C is for the process that gives the parts out
        )
        self.task: tuple[int, int] | None = None

    def give(self, number: int, attempt: int) -> None:
        self.task = number, attempt
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is dead, which `answers` will see
            self.process.stdin.write(b"%d\n" % number)
            self.process.stdin.flush()

    def answer(self) -> dict[str, Any] | None:
        """The next answer, or None if the process has died."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            return None
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self.process.wait()


class _Pool:
    def __init__(self, path: str):
        self._path = path
        self._selector = selectors.DefaultSelector()
        self.idle: list[_Worker] = []
        self._workers: set[_Worker] = set()

    @property
    def n_busy(self) -> int:
        return len(self._workers) - len(self.idle)

    def start(self) -> None:
        worker = _Worker(self._path)
        self._workers.add(worker)
        self.idle.append(worker)
        assert worker.process.stdout is not None
        self._selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def give(self, number: int, attempt: int) -> None:
        self.idle.pop().give(number, attempt)

    def answers(self) -> Iterator[tuple[int, int, dict[str, Any] | None]]:
        """(part, attempt, answer) of each worker that has something to say; waits for one."""
        for key, _ in self._selector.select():
            worker: _Worker = key.data
            answer = worker.answer()
            task, worker.task = worker.task, None
            if answer is None:
                self._remove(worker)
                if task is None:  # it died before it got a part
                    continue
            else:
                self.idle.append(worker)
            assert task is not None
            yield *task, answer

    def _remove(self, worker: _Worker) -> None:
        assert worker.process.stdout is not None
        self._selector.unregister(worker.process.stdout)
        self._workers.discard(worker)
        if worker in self.idle:
            self.idle.remove(worker)
        worker.end()

    def close(self) -> None:
        """End all workers at once: what they had not finished is begun anew by the next run."""
        for worker in list(self._workers):
            self._remove(worker)
        self._selector.close()


_PROGRAM = "import sys; from streamtok.parts.workers import run_worker; run_worker(sys.argv[1])"


def run_worker(path: str) -> None:
    """Be a worker: read numbers of parts from standard input, write an answer for each."""
    plan = Plan.load(path)
    output = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not come between the answers
    for line in sys.stdin:
        number = int(line)
        try:
            answer = run_part(plan, number).as_json()
        except MemoryError:
            answer = {"error": f"part {number}: not enough memory"}
        except Exception as error:
            answer = {"error": f"{error}" or type(error).__name__}
        try:
            os.write(output, json.dumps(answer).encode() + b"\n")
        except BrokenPipeError:  # who gave the part out is dead
            return
