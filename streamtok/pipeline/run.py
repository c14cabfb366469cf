"""Source → documents → encoder → sink, with checkpoints from which another process can continue.

Groups of parts are read while earlier ones are being encoded, by several threads if there are, and
their ids are written in order. Before waiting for an input, the run writes all ids that are final.
Once everything read has been written, the state of the run is four small things: the position in
the inputs, the encoder's state, the totals, and the sizes of the output files. The run saves them
from time to time. The order makes a crash harmless: first the ids are on the disk, then the
checkpoint says so, then complete files get their names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .checkpoint import Checkpoint
from .documents import DocumentEncoder
from .sinks import Files
from .skip_log import SkipLog
from .sources import Feed, Part

if TYPE_CHECKING:
    from .sinks.flat import Sink


@dataclass
class Totals:
    """What a run has done: inputs and documents ended, bytes of text, ids, records skipped.

    skipped_because: how many of these for each reason.
    """

    inputs: int = 0
    documents: int = 0
    bytes: int = 0
    tokens: int = 0
    skipped: int = 0
    skipped_because: dict[str, int] = field(default_factory=dict)


class Run:
    """One run of the pipeline, from the beginning of `feed` or from a saved state on.

    With a checkpoint, the sink must be `sinks.Files`. `totals` grows as the run proceeds;
    `has_begun` tells whether this process has encoded anything.
    """

    def __init__(
        self,
        feed: Feed,
        encoder: DocumentEncoder,
        sink: Sink,
        *,
        checkpoint: Checkpoint | None = None,
        every: float = 5.0,
        skip_log: SkipLog | None = None,
    ):
        """every: seconds between checkpoints. skip_log: takes the bad records of the feed."""
        self._feed = feed
        self._encoder = encoder
        self._sink = sink
        self._files = sink if isinstance(sink, Files) else None
        self._checkpoint = checkpoint
        self._every = every
        self._skip_log = skip_log or SkipLog()
        self._saved = time.monotonic()
        self._covered: tuple[int, int] | None = None  # what the last checkpoint has of the feed
        self._before = Totals()  # what earlier processes have done
        self.totals = Totals()
        self.has_begun = False
        self._is_done = False  # all but publishing

    def take_up(self, state: dict[str, Any]) -> None:
        """Continue from a state that `save` has saved, with which the sink was opened.

        Call it inside `Checkpoint.taking_up`. Raises OSError, CheckpointError.
        """
        self._before, self.totals = Totals(**state["totals"]), Totals(**state["totals"])
        self._is_done = state["done"]
        self._skip_log.setstate(state["skip_log"], self._is_done)
        if not self._is_done:
            self._encoder.setstate(state["encoder"])
            self._feed.begin_at(state["position"])
        elif state["position"] is not None:
            raise ValueError("a run that has ended, and a position")

    @property
    def place(self) -> str:
        """The document that could not be encoded, or the input that is being read, for errors."""
        failed = self._encoder.failed_place
        return self._feed.name if failed is None else failed

    def go(
        self,
        advance: Callable[[int, Totals], None] = lambda read, totals: None,
        stopped: type[BaseException] | tuple[type[BaseException], ...] = (),
    ) -> None:
        """Run to the end of the inputs, then publish all files.

        advance: called with the bytes read from the disk and the totals. stopped: exceptions that
        count as the end of the inputs, such as that of a signal; they may be raised while the
        inputs wait. Raises what the inputs, the encoder and the sink raise, and DocumentError if
        nothing was encoded because all records were skipped; then there is nothing to continue.
        """
        if not self._is_done:
            self._encode_all(advance, stopped)
        self._sink.finish()
        if self._files is not None:
            if not self._is_done:
                self.save(is_done=True)
            self._files.publish()
            self._skip_log.publish()
        if self._checkpoint is not None:
            self._checkpoint.remove()

    def _encode_all(
        self,
        advance: Callable[[int, Totals], None],
        stopped: type[BaseException] | tuple[type[BaseException], ...],
    ) -> None:
        groups = self._feed.groups(self._encoder.is_open)
        read = -1
        try:
            while (parts := self._next(groups)) is not None:
                self._add(parts)
                if self._feed.may_wait:
                    self._drain()
                self.has_begun = True
                if parts or self._feed.read != read:  # not while nothing comes
                    read = self._feed.read
                    advance(read, self.totals)
                self._step()
        except stopped:
            self._add(self._feed.stop())
        finally:
            groups.close()  # type: ignore[attr-defined]
        self._encoder.end_stretch()  # only a part of a document is still open
        self._drain()
        self._encoder.release()  # a Parquet table is built only now, and needs the memory
        if self._skip_log.has_all(self.totals.documents):
            if self._checkpoint is not None:
                self._checkpoint.remove()
            raise self._skip_log.nothing_left()

    def _next(self, groups: Iterator[list[Part]]) -> list[Part] | None:
        try:
            return next(groups, None)
        except Exception:
            self._drain()  # write the ids before the error, or raise an earlier error
            raise

    def _add(self, parts: Sequence[Part]) -> None:
        """Submit the parts for encoding, and write results that are due."""
        if parts:
            try:
                self._encoder.add(parts, self._feed.places)
            except Exception:
                self._drain()  # as in `_next`
                raise
        while self._encoder.is_ahead:
            self._write()
        self._count()

    def _drain(self) -> None:
        """Write the ids of everything that was read."""
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
        totals.skipped = self._skip_log.skipped
        totals.skipped_because = self._skip_log.because

    def _step(self) -> None:
        """Between two groups: publish complete files, and save a checkpoint if it is due.

        Of an input that may wait, the first is due at once, because a followed file may be rotated
        at any time; later ones are due if anything has come, also while nothing comes.
        """
        if self._files is None:
            return
        is_due = time.monotonic() - self._saved >= self._every
        if self._feed.may_wait and self._covered is None:
            is_due = self._feed.has_opened
        elif self._feed.may_wait:
            is_due = is_due and self._covered != (self._feed.done, self._feed.read)
        if self._files.has_complete or (self._checkpoint is not None and is_due):
            self.save()
            self._files.publish()

    def save(self, is_done: bool = False) -> None:
        """Save a checkpoint. Call it between two groups. Costs a few fsyncs.

        Raises OSError; the previous checkpoint stays valid then.
        """
        if self._checkpoint is None:
            return
        assert self._files is not None
        self._drain()
        self._files.sync()
        self._skip_log.sync()
        self._checkpoint.save(
            {
                "done": is_done,
                "position": None if is_done else self._feed.position(),
                "encoder": self._encoder.getstate(),
                "files": self._files.getstate(),
                "skip_log": self._skip_log.getstate(),
                "totals": asdict(self.totals),
            }
        )
        self._saved = time.monotonic()
        self._covered = self._feed.done, self._feed.read
