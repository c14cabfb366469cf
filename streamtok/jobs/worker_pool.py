"""A pool of processes on this machine, which encode spans. The events are yielded in order.

Through a socket, a worker receives a function that makes the encoder, and then spans; it replies
with events. The pool keeps these until it is their turn, first in memory and then in a temporary
file, and emits only complete units. If a worker dies, another one gets its span; there is nothing
to clean up. If the pool's process dies, the workers see the closed socket and exit.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ..errors import DocumentError
from .documents import explain
from .sources import unit_ends
from .sources.blocks import Waiting
from .span_encoder import Event, Ids, Span, SpanEncoder, UnitEnd

if TYPE_CHECKING:
    from .rows import Row

_PROGRAM = "import sys; from streamtok.jobs.worker_pool import run_worker; run_worker(sys.argv[1])"
_INSIDE, _END_OF_UNIT, _LAST = b"i", b"u", b"l"  # the first byte of a worker's message
_IN_MEMORY = 1 << 26  # bytes of a span's events to keep in memory; more go to a file
_IN_FILES = 1 << 32  # bytes of all events; beyond that, only the first span is received
_ATTEMPTS = 3


class _Over(NamedTuple):
    """The end of a span. error: why it could not be encoded, or None."""

    error: DocumentError | OSError | None = None


class InProcesses:
    """Encodes spans in `workers` processes."""

    def __init__(
        self,
        begin: Callable[[], SpanEncoder],
        spans: Callable[[Row], Iterator[Span]],
        workers: int,
        waiting: Waiting = contextlib.nullcontext,
    ):
        """begin: makes the encoder; it is pickled, and called in each process.

        spans: yields the spans after a row. waiting: makes the context manager in which to wait.
        """
        self._begin = begin
        self._spans = spans
        self._n_workers = workers
        self._waiting = waiting
        self._workers: dict[Connection, _Worker] = {}
        self._idle: list[_Worker] = []

    def run(self, after: Row) -> Iterator[Event]:
        """Yield the events of all text after a row, in order. Raises DocumentError and OSError."""
        spans = self._spans(after)
        begun: deque[_Answer] = deque()
        unassigned: deque[_Answer] = deque()  # without a worker: new, or the worker has died
        try:
            while True:
                while len(begun) < 2 * self._n_workers and (span := next(spans, None)) is not None:
                    begun.append(_Answer(span))
                    unassigned.append(begun[-1])
                while unassigned and self._has_idle():
                    self._idle.pop().assign(unassigned.popleft())
                if not begun:
                    return
                first = begun[0]
                yield from first.events()
                if first.is_over:
                    first.close()
                    begun.popleft()
                    continue
                unassigned.extendleft(self._receive(first, begun))
        finally:
            for answer in begun:
                answer.close()
            self.release()

    def _has_idle(self) -> bool:
        if not self._idle and len(self._workers) < self._n_workers:
            worker = _Worker(self._begin)
            self._workers[worker.connection] = worker
            self._idle.append(worker)
        return bool(self._idle)

    def _receive(self, first: _Answer, begun: Sequence[_Answer]) -> list[_Answer]:
        """Wait for messages from the workers; return the answers whose worker has died."""
        is_full = sum(answer.size for answer in begun) > _IN_FILES
        with self._waiting():
            ready = wait(list(self._workers), 0.2 if is_full else None)
        lost = []
        for connection in ready:
            worker = self._workers[connection]  # type: ignore[index]
            answer = worker.answer
            if is_full and answer is not first:
                continue
            if worker.receive():
                if worker.answer is None:
                    self._idle.append(worker)
                continue
            self._remove(worker)
            if answer is not None:
                answer.lose()
                lost.append(answer)
        return lost

    def _remove(self, worker: _Worker) -> None:
        del self._workers[worker.connection]
        if worker in self._idle:
            self._idle.remove(worker)
        worker.end()

    def release(self) -> None:
        for worker in list(self._workers.values()):
            self._remove(worker)


class _Answer:
    """The events of a span that have been received so far."""

    def __init__(self, span: Span):
        self.span = span
        self.is_over = False
        self.size = 0
        self._attempts = 0
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._ready = self._emitted = 0  # bytes of complete units; bytes of emitted events

    def add(self, message: bytes) -> None:
        self._file.seek(self.size)
        self._file.write(memoryview(message)[1:])
        self.size += len(message) - 1
        if message[:1] != _INSIDE:
            self._ready = self.size

    def events(self) -> Iterator[Event]:
        """Yield each event of the complete units once. Raises the worker's error."""
        while self._emitted < self._ready:
            self._file.seek(self._emitted)
            said = pickle.load(self._file)
            self._emitted = self._file.tell()
            if isinstance(said, _Over):
                if said.error is not None:
                    raise said.error
                self.is_over = True
                continue
            if isinstance(said, UnitEnd):
                self.span = self.span._replace(
                    first=said.input, position=said.position, stream=said.stream
                )
            yield said
        if self._emitted == self.size:
            self._file.seek(0)
            self._file.truncate()
            self._ready = self._emitted = self.size = 0

    def lose(self) -> None:
        """Drop the events that were not emitted, because the worker has died.

        Raises DocumentError the third time.
        """
        self._attempts += 1
        if self._attempts >= _ATTEMPTS:
            raise DocumentError(
                f"the process that worked on input {self.span.first + 1} died {_ATTEMPTS} times, "
                "perhaps for lack of memory"
            )
        # Complete units that were not emitted are encoded again, too.
        self._file.truncate(self._emitted)
        self._ready = self.size = self._emitted

    def close(self) -> None:
        self._file.close()


class _Worker:
    """A process, and the answer that it is working on."""

    def __init__(self, begin: Callable[[], SpanEncoder]):
        # The package may have been found through a changed sys.path.
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        self.connection, theirs = Pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # Ctrl-C must only reach the process with the pool
        )
        theirs.close()
        self.answer: _Answer | None = None
        self._send((unit_ends.UNIT, begin))

    def _send(self, value: Any) -> None:
        with contextlib.suppress(
            BrokenPipeError, ConnectionResetError
        ):  # the process is dead, which `receive` will notice
            self.connection.send(value)

    def assign(self, answer: _Answer) -> None:
        self.answer = answer
        self._send(answer.span)

    def receive(self) -> bool:
        """Receive a message that has begun to arrive; return False if the process has died."""
        try:
            message = self.connection.recv_bytes()
        except (EOFError, OSError):
            return False
        assert self.answer is not None
        self.answer.add(message)
        if message[:1] == _LAST:
            self.answer = None
        return True

    def end(self) -> None:
        self.process.kill()
        self.connection.close()
        self.process.wait()


# In a worker


def run_worker(fd: str) -> None:
    """Run a worker: read `begin` and then spans from the socket, and send the events."""
    connection = Connection(int(fd))

    def send(value: Event | _Over) -> None:
        mark = _END_OF_UNIT if isinstance(value, UnitEnd) else _INSIDE
        mark = _LAST if isinstance(value, _Over) else mark
        connection.send_bytes(mark + pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    # The process with the pool may be dead.
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        unit_ends.UNIT, begin = connection.recv()
        worker: SpanEncoder | None = None
        while True:
            span: Span = connection.recv()
            try:
                worker = worker or begin()
                for event in worker.run(span):
                    if isinstance(event, Ids):  # a view cannot be sent
                        found = event.found._replace(data=bytes(event.found.data))
                        event = event._replace(found=found)
                    send(event)
                send(_Over())
            except (BrokenPipeError, ConnectionResetError):
                return
            except MemoryError:
                send(_Over(DocumentError("not enough memory")))
            except OSError as error:
                send(_Over(OSError(error.errno, error.strerror, error.filename)))
            except Exception as error:
                where = worker.place if worker else ""
                send(_Over(DocumentError(explain(error, where))))
