"""Source → documents → encoder → sink, and the checkpoints that let another process go on.

Groups of parts are read while others are being encoded, by several threads if there are, and their
ids are written in order. Before the inputs may have to be waited for, everything leaves that is
certain. When all is written that was read, the state of the run is four small things: the position
in the inputs, the encoder's state, the totals, and the sizes of the output files. `run` saves them
now and then. The order is what makes a crash harmless: first the ids are on the disk, then the
checkpoint says so, then complete files get their names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .checkpoint import Checkpoint
from .documents import DocumentEncoder
from .sources import Feed, Part

if TYPE_CHECKING:
    from .._types import IdArray
    from .sinks.flat import Ends


@dataclass
class Totals:
    """What has gone through: inputs and documents that have ended, bytes of text, ids, records
    that were skipped.
    """

    inputs: int = 0
    documents: int = 0
    bytes: int = 0
    tokens: int = 0
    skipped: int = 0


class IdSink(Protocol):
    """What takes ids and the places in them at which documents end."""

    def write(self, ids: IdArray, ends: Ends = ()) -> None: ...
    def finish(self) -> None: ...


class FileSink(IdSink, Protocol):
    """`sinks.Files`: what can be saved and published."""

    @property
    def has_complete(self) -> bool: ...
    def sync(self) -> None: ...
    def getstate(self) -> dict[str, Any]: ...
    def publish(self) -> None: ...


class Run:
    """One run of the pipeline, from where it stands.

    With a checkpoint the sink must be a FileSink. `totals` moves as the run does; `has_begun` says
    whether this process has written anything.
    """

    def __init__(
        self,
        feed: Feed,
        encoder: DocumentEncoder,
        sink: IdSink,
        *,
        files: FileSink | None = None,
        checkpoint: Checkpoint | None = None,
        every: float = 5.0,
        totals: Totals | None = None,
    ):
        """files: the sink, if it has files to publish. every: seconds between checkpoints."""
        self._feed = feed
        self._encoder = encoder
        self._sink = sink
        self._files = files
        self._checkpoint = checkpoint
        self._every = every
        self._saved = time.monotonic()
        self._before = totals or Totals()
        self.totals = Totals(**asdict(self._before))
        self.has_begun = False

    @property
    def input_name(self) -> str:
        """str: the input that is read, or that could not be encoded, for errors."""
        failed = self._encoder.failed_name
        return self._feed.name if failed is None else failed

    def go(
        self,
        advance: Callable[[int, Totals], None] = lambda read, totals: None,
        stopped: type[BaseException] | tuple[type[BaseException], ...] = (),
    ) -> None:
        """Run to the end of the inputs; then all files are published.

        advance: called with the bytes read from the disk and the totals. stopped: an exception
        that is raised where the inputs wait, and is an end of them, such as that of a signal.
        """
        groups = self._feed.groups(self._encoder.is_open)
        try:
            while (parts := self._next(groups)) is not None:
                self._add(parts)
                if self._feed.may_wait:
                    self._drain()
                self.has_begun = True
                advance(self._feed.read, self.totals)
                self._step()
        except stopped:
            self._add(self._feed.stop())
        finally:
            groups.close()  # type: ignore[attr-defined]
        self._drain()
        self._encoder.release()  # a table of Parquet is made only now, and needs memory
        self._sink.finish()
        if self._files is not None:
            self.save(is_done=True)
            self._files.publish()
        if self._checkpoint is not None:
            self._checkpoint.remove()

    def _next(self, groups: Iterator[list[Part]]) -> list[Part] | None:
        try:
            return next(groups, None)
        except Exception:
            self._drain()  # what came before is fine, or is what went wrong first
            raise

    def _add(self, parts: Sequence[Part]) -> None:
        """Have the parts encoded, and write what is ready by then."""
        if parts:
            try:
                self._encoder.add(parts, self._feed.name)
            except Exception:
                self._drain()  # what came before is fine, or is what went wrong first
                raise
        while self._encoder.is_ahead:
            self._write()
        self._count()

    def _drain(self) -> None:
        """Write all that was read."""
        while self._encoder.n_tasks:
            self._write()
        self._count()

    def _write(self) -> None:
        found = self._encoder.take()
        self._sink.write(found.ids, found.ends)
        self.totals.tokens += len(found.ids)

    def _count(self) -> None:
        before, totals = self._before, self.totals
        totals.inputs = self._feed.done
        totals.documents = before.documents + self._encoder.documents
        totals.bytes = before.bytes + self._encoder.bytes
        totals.skipped = before.skipped + self._feed.skipped

    def _step(self) -> None:
        """Between two groups: publish what is complete, and save if it is time."""
        if self._files is None:
            return
        is_due = time.monotonic() - self._saved >= self._every
        if self._files.has_complete or (self._checkpoint is not None and is_due):
            self.save()
            self._files.publish()

    def save(self, is_done: bool = False) -> None:
        """Make a checkpoint of this moment, between two groups. Costs some fsyncs.

        Raises OSError; the checkpoint before it is there then.
        """
        if self._checkpoint is None:
            return
        assert self._files is not None
        self._drain()
        self._files.sync()
        self._checkpoint.save(
            {
                "done": is_done,
                "position": None if is_done else self._feed.position(),
                "encoder": self._encoder.getstate(),
                "files": self._files.getstate(),
                "totals": asdict(self.totals),
            }
        )
        self._saved = time.monotonic()
