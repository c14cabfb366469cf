"""Runs one job: threads or processes encode units of text, whose ids are written in order.

So that another process can continue, a run records where each unit ended in the inputs, and how
long the output files were then. The order of writes makes a crash harmless: first the ids are
written, then the record, and only then do complete files get their names. The process that
continues cuts the files back to the last row of the record, and encodes from there.
"""

from __future__ import annotations

import contextlib
import copy
import json
import time
from collections.abc import Callable, Iterator

from .record import Record
from .rows import Row, Totals
from .sinks.flat import Sink
from .sinks.shards import Files
from .sources.records import BadRecord
from .span_encoder import Event, Ids, Progress


class Run:
    """Runs a job to its end. `totals` holds the counts so far."""

    def __init__(
        self,
        events: Callable[[Row], Iterator[Event]],
        out: Files | Sink,
        record: Record | None = None,
        every: float = 5.0,
        *,
        is_part: bool = False,
    ):
        """events: returns the events of all text after a row. out: `Files`, or the sink of a pipe.

        every: seconds between commits. is_part: the run is a part of a job, so it is not an error
        if all of its records are skipped.
        """
        self._events = events
        self._files = out if isinstance(out, Files) else None
        self._write = out.append if isinstance(out, Files) else out.write
        self._is_part = is_part
        self._record = record
        self._every = every
        self._last = Row()
        self._waiting: list[Row] = []
        self._is_committing = False
        self.totals = Totals()
        if record is not None and record.is_begun:
            self._last = record.last
            self.totals = copy.deepcopy(record.last.totals)

    def begin(self) -> None:
        """Create the files, or reopen those in the record. Raises OSError and CheckpointError."""
        record, files = self._record, self._files
        if record is not None and record.done is not None:
            return
        if files is not None:
            if record is not None and record.is_begun:
                files.go_on(self._last)
            else:
                files.begin()
        if record is not None:
            record.begin()

    def go(self, advance: Callable[[int, Totals], None] = lambda read, totals: None) -> None:
        """Encode the remaining text, then publish all files.

        advance: called with the bytes read from the disk and the totals. Raises the errors of the
        events and of the files. If all records were skipped, removes the record and raises
        DocumentError.
        """
        record, files = self._record, self._files
        if record is not None and record.done is not None:
            assert files is not None
            files.publish_left(record.done)
            record.remove()
            return
        try:
            self._take_all(advance)
        except BaseException:
            if not self._is_committing:
                with contextlib.suppress(OSError):  # may be the same error again
                    self._commit()
            raise
        self._commit()
        if self.totals.skipped and not self.totals.documents and not self._is_part:
            log = None if files is None else files.keep_log()
            if record is not None:
                record.remove()
            self.totals.check_skipped(log)
        if files is None:
            return
        done = files.finish(self.totals)
        if record is not None:
            record.finish(done)
        files.publish()
        if record is not None:
            record.remove()

    def _take_all(self, advance: Callable[[int, Totals], None]) -> None:
        saved = time.monotonic()
        with contextlib.closing(self._events(self._last)) as events:  # type: ignore[type-var]
            for event in events:
                if isinstance(event, Ids):
                    self._write(event.found)
                    self.totals.tokens += event.found.n_ids
                    self.totals.documents += len(event.found.ends)
                    self.totals.bytes += event.bytes
                elif isinstance(event, Progress):
                    self.totals.inputs = event.inputs
                    advance(event.read, self.totals)
                elif isinstance(event, BadRecord):
                    self.totals.skip(event)
                    if self._files is not None:
                        row = {"file": event.file, **event.position, "reason": event.reason}
                        self._files.log(json.dumps(row).encode() + b"\n")
                elif self._files is not None:
                    is_mark = event.stream is not None
                    self.totals.inputs = event.input
                    files = self._files.end_unit(is_mark)
                    if self._record is not None:
                        where = event._asdict() | files
                        self._last = Row(totals=copy.deepcopy(self.totals), **where)
                        self._waiting.append(self._last)
                    # Marks are made only when a commit is due.
                    is_due = is_mark or time.monotonic() - saved >= self._every
                    if self._files.has_complete or is_due:
                        self._commit()
                        saved = time.monotonic()

    def _commit(self) -> None:
        """Make the rows collected so far safe from a crash. Costs a few fsyncs."""
        if self._files is None:
            return
        self._is_committing = True
        if self._record is not None and self._waiting:
            self._files.sync()
            self._record.add(self._waiting)
            self._record.compact(self._files.pieces)
            self._waiting.clear()
        self._files.publish(None if self._record is None else self._record.last.shard)
        self._is_committing = False
