"""Encodes spans of the inputs and yields events, in order.

Text is read while earlier text is being encoded, perhaps on several threads. Nothing after the end
of a unit depends on the text before it, because a document has ended or the text has a clean cut
there. A text without such cuts, or an input that may wait for days, has marks, at which the
encoder's state is saved.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .documents import Encoded
from .rows import Row
from .sources import unit_ends
from .sources.unit_ends import CleanCuts

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .job import EncodeJob
    from .sinks.by_name import Family
    from .sinks.flat import Formed
    from .sources.inputs import Input
    from .sources.records import BadRecord
    from .sources.splitters import Part


class Span(NamedTuple):
    """Inputs first:last. position: where to begin in the first input (None: at its beginning).

    stop: where to end, if there is only one input (None: at its end). stream: the encoder's state,
    if the position is a mark.
    """

    first: int
    last: int
    position: dict[str, Any] | None = None
    stop: int | None = None
    stream: dict[str, Any] | None = None


class Ids(NamedTuple):
    """Ids in the format of the files. bytes: size of their text."""

    found: Formed
    bytes: int


class Progress(NamedTuple):
    """Progress of reading. read: bytes read from the inputs. inputs: how many are completed."""

    read: int
    inputs: int


class UnitEnd(NamedTuple):
    """The end of a unit, or a mark. input, position: where the next text begins.

    stream: the encoder's state, only for a mark.
    """

    input: int
    position: dict[str, Any] | None
    stream: dict[str, Any] | None = None


Event: TypeAlias = "Ids | BadRecord | Progress | UnitEnd"
"""An event that a `SpanEncoder` yields. A BadRecord is a record that was skipped."""


def group_ends(sizes: Sequence[int | None]) -> list[bool]:
    """For each input, whether a unit ends with it. Small inputs share a unit.

    sizes: bytes on the disk, None if unknown.
    """
    ends, together = [], 0
    for number, size in enumerate(sizes):
        together += unit_ends.UNIT if size is None else size
        is_end = (
            together >= unit_ends.UNIT
            or number + 1 == len(sizes)
            or (sizes[number + 1] or unit_ends.UNIT) >= unit_ends.UNIT  # the next one is large
        )
        ends.append(is_end)
        if is_end:
            together = 0
    return ends


class SpanEncoder:
    """Encodes spans, one after another, with the same caches."""

    def __init__(
        self,
        job: EncodeJob,
        encoding: Encoding,
        family: Family,
        open_input: Callable[[int, Span], Input],
        sizes: Sequence[int | None],
        skipped: list[BadRecord],
        *,
        num_threads: int = 1,
        marks_every: float | None = None,
        ends_at: type[BaseException] | tuple[type[BaseException], ...] = (),
        pauses_at: type[BaseException] | tuple[type[BaseException], ...] = (),
    ):
        """open_input: opens an input by its number, for a span. sizes: as for `group_ends`.

        skipped: the list to which the inputs append skipped records. marks_every: seconds between
        marks, for inputs that need them, or None for no marks. ends_at: exceptions that end an
        input, such as a signal's; pauses_at: exceptions after which another process continues. Both
        may be raised while an input waits.
        """
        self._job = job
        self._family = family
        self._open_input = open_input
        self._ends = group_ends(sizes)
        self._before = [0, *itertools.accumulate(size or 0 for size in sizes)]
        self._encoder = job.open_encoder(encoding, num_threads)
        self._conversations = job.open_conversations(encoding)
        has_cuts = encoding.definition.texts.cuts is not None and not job.is_split
        self._clean = CleanCuts(job.open_stream(encoding)) if has_cuts else None
        # In inputs without marks, units end at clean cuts or where documents end.
        has_marks = job.follow or (not job.is_split and self._clean is None)
        self._marks_every = marks_every if has_marks else None
        self._ends_at = ends_at
        self._pauses_at = pauses_at
        self._input: Input | None = None
        self._bad = skipped
        self.is_idle = True  # nothing has been encoded yet

    def release(self) -> None:
        """Free the caches and end all threads."""
        self._encoder.release()

    @property
    def place(self) -> str:
        """The document that could not be encoded, or else the current input, for errors."""
        failed = self._encoder.failed_position
        if failed is not None:
            return failed
        return self._input.name if self._input is not None else ""

    def run_after(self, row: Row, span: Span | None) -> Iterator[Event]:
        """Encode the text of `span` after a row of the record, then release the caches."""
        try:
            if span is not None and row != Row():
                span = Span(row.input, span.last, row.position, span.stop, row.stream)
            if span is not None:
                yield from self.run(span)
        finally:
            self.release()  # a Parquet table is built after this, and needs the memory

    def run(self, span: Span) -> Iterator[Event]:
        """Encode a span.

        Errors from the inputs and the encoder are raised only after the ids of the earlier text
        were yielded.
        """
        encoder = self._encoder
        encoder.begin()
        for number in range(span.first, span.last):
            position = span.position if number == span.first else None
            one = self._input = self._open_input(number, span)
            one.clean, one.conversations = self._clean, self._conversations
            if span.stream is not None and number == span.first:
                encoder.setstate(span.stream)
            elif position and not self._job.is_split:
                encoder.begin_inside(position["at"])
            ended = yield from self._run_input(one, number, position)
            encoder.end_segment()  # does nothing unless the span ends inside a document
            yield from self._drain()
            if span.stop is not None:
                if ended != span.stop:
                    yield UnitEnd(number, one.position())
            elif self._ends[number] or number + 1 == span.last:
                yield UnitEnd(number + 1, None)
            yield Progress(self._before[number] + one.read, number + (span.stop is None))
        self._input = None

    def _run_input(
        self, one: Input, number: int, position: dict[str, Any] | None
    ) -> Generator[Event, None, int]:
        """Encode an input from `position` on. Return where its last unit ended, or -1."""
        encoder = self._encoder
        marked, covered, is_marked = time.monotonic(), -1, False
        said = ended = -1
        if one.may_wait:  # before it is opened
            yield from self._drain()
        groups = one.groups(position, encoder.is_open)
        try:
            while (parts := (yield from self._next(groups))) is not None:
                yield from self._add(parts, one)
                if one.may_wait:
                    yield from self._drain()
                if parts or one.read != said:  # not while the input is idle
                    self.is_idle = False
                    said = one.read
                    yield Progress(self._before[number] + said, number + one.is_done)
                if one.ends_unit and not one.is_done:
                    ended = one.position()["at"]
                    if encoder.is_open:
                        encoder.end_segment()
                        yield from self._drain()
                        encoder.begin_inside(ended)
                    yield from self._drain()
                    yield UnitEnd(number, one.position())
                elif self._marks_every is not None and not one.is_done:
                    is_due = time.monotonic() - marked >= self._marks_every
                    # A followed file may be rotated at any time.
                    if covered != one.read and (is_due or (one.may_wait and not is_marked)):
                        marked, covered, is_marked = time.monotonic(), one.read, True
                        yield from self._drain()
                        yield self._mark(one, number)
        except self._ends_at:
            yield from self._add(one.stop(), one)
        except self._pauses_at:
            if self._marks_every is not None and not self.is_idle:
                yield from self._drain()
                yield self._mark(one, number)
            raise
        finally:
            groups.close()  # type: ignore[attr-defined]
        return ended

    def _mark(self, one: Input, number: int) -> UnitEnd:
        return UnitEnd(number, one.position(), stream=self._encoder.getstate())

    def _next(self, groups: Iterator[list[Part]]) -> Generator[Event, None, list[Part] | None]:
        try:
            return next(groups, None)
        except Exception:
            yield from self._drain()  # write the ids before the error, or raise an earlier error
            raise

    def _add(self, parts: Sequence[Part], one: Input) -> Iterator[Event]:
        """Submit the parts for encoding, and yield the results that are due."""
        if parts:
            try:
                self._encoder.add(parts, one.positions)
            except Exception:
                yield from self._drain()  # as in `_next`
                raise
        while self._encoder.is_ahead:
            yield self._ids(self._encoder.take())
        yield from self._take_bad()

    def _take_bad(self) -> Iterator[Event]:
        while self._bad:
            yield self._bad.pop(0)

    def _drain(self) -> Iterator[Event]:
        """Yield the remaining results for all text read so far."""
        while self._encoder.n_tasks:
            yield self._ids(self._encoder.take())
        yield from self._take_bad()

    def _ids(self, found: Encoded) -> Ids:
        return Ids(self._family.form(found.ids, found.ends, found.mask), found.bytes)
