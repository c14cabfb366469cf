"""Numbered parts of a job in processes of this machine.

Each worker is a process of its own that reads numbers of parts from its standard input, one a
line, and answers each with a line of JSON. A worker that dies (killed, out of memory) is replaced,
and its part is emitted again, at most `ATTEMPTS` times. What a part itself reports as an error is
not tried again. If the process that gives the parts out dies, its workers see the end of their
input and leave after their part. This module does not know what a part is.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

ATTEMPTS = 3


def check_workers(workers: object) -> None:
    """Raise ValueError unless `workers` is a positive number."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers must be a positive number, not {workers!r}")


def give_numbers(
    program: str,
    argument: str,
    numbers: Iterable[int],
    workers: int,
    advance: Callable[[dict[str, Any]], None],
) -> list[str]:
    """Run the parts in `workers` processes; return what went wrong, a line for each such part.

    program: Python that calls `answer_numbers`; sys.argv[1] is `argument`. advance: called with
    each answer. An error does not stop the other parts. However this call ends, the workers have
    ended.
    """
    fresh = iter(numbers)  # there may be millions
    waiting: deque[tuple[int, int]] = deque(
        (number, 0) for number in itertools.islice(fresh, workers)
    )
    errors: list[str] = []
    pool = _Pool(program, argument)
    try:
        for _ in range(len(waiting)):
            pool.start()
        while waiting or pool.n_busy:
            while waiting and pool.idle:
                pool.give(*waiting.popleft())
                waiting.extend((number, 0) for number in itertools.islice(fresh, 1))
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
                    advance(answer)
    finally:
        pool.close()
    return errors


def answer_numbers(work: Callable[[int], dict[str, Any]]) -> None:
    """Be a worker: read numbers of parts from standard input, write an answer for each."""
    output = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not come between the answers
    for line in sys.stdin:
        number = int(line)
        try:
            answer = work(number)
        except MemoryError:
            answer = {"error": f"part {number}: not enough memory"}
        except OSError as error:
            answer = {"error": described(error)}
        except Exception as error:
            answer = {"error": f"{error}" or type(error).__name__}
        try:
            os.write(output, json.dumps(answer).encode() + b"\n")
        except BrokenPipeError:  # who gave the part out is dead
            return


def described(error: OSError) -> str:
    """The file, if there is one, and what went wrong with it: the command line's words."""
    what = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return what
    name = os.fsdecode(error.filename)
    return f"{name if name.isprintable() else ascii(name)}: {what}"


def start_process(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A process of this Python that runs `program`; its standard input and output are pipes."""
    # The package may have been found through a changed sys.path.
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    known = os.environ.get("PYTHONPATH")
    paths = os.pathsep.join([root, known] if known else [root])
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,  # Ctrl-C is for the process that gives the work out
    )


class _Worker:
    def __init__(self, program: str, argument: str):
        self.process = start_process(program, argument)
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
    def __init__(self, program: str, argument: str):
        self._start = program, argument
        self._selector = selectors.DefaultSelector()
        self.idle: list[_Worker] = []
        self._workers: set[_Worker] = set()

    @property
    def n_busy(self) -> int:
        return len(self._workers) - len(self.idle)

    def start(self) -> None:
        worker = _Worker(*self._start)
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
