"""Pre-tokens counted by processes of this machine, for training.

Texts are cut where no pre-token lies across, so the counts of spans are together those of the text.
They are merged in the order of the text, because one way to break ties asks which pair came first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from ..errors import StreamtokError
from ..patterns.pattern import Pattern
from ..pipeline import PART_SIZE
from ..pipeline.rows import Row
from ..pipeline.skip_log import SkipLog
from ..pipeline.sources import Reading
from ..pipeline.sources.unit_ends import CleanCuts, FindCut, cuts_behind
from ..pipeline.span_encoder import Span
from ..pipeline.spans import open_span, spans_after
from ..pipeline.worker_pool import InProcesses
from ..stores import places
from ..training.trainer import Trainer
from .counted_documents import DocumentCounter

Advance: TypeAlias = Callable[[int, int], None]
_BLOCK = 1 << 20


class Counted(NamedTuple):
    """The counts of a span; the bytes of all files up to its end; the records skipped in it."""

    trainer: Trainer
    read: int
    skipped: int


def count_in_parts(
    paths: Sequence[str],
    pattern: str,
    workers: int,
    *,
    reading: Reading = Reading(),  # noqa: B008 (immutable)
    part_size: int = PART_SIZE,
    advance: Advance = lambda size, skipped: None,
) -> Trainer:
    """A trainer with the counts of the documents in some files, counted by `workers` processes.

    The counts, and their order, are those of one trainer that gets one document after another.
    paths: files or URLs; a compressed one is one part. pattern: as for `Trainer`. advance: called
    with the bytes that are counted so far, and the lines or rows skipped in the last part. The
    counts of a few parts wait for their turn, large ones on the disk (`TMPDIR`). Raises
    StreamtokError for text that cannot be counted, for an input that changes meanwhile, and for a
    part whose worker died three times; OSError, and as `Trainer`.
    """
    trainer = Trainer(pattern, errors=reading.errors, num_threads=1)
    sizes = [places.size_of(path) for path in paths]
    find: FindCut | None = None
    if reading.end is not None:
        find = cuts_behind(reading.end) if reading.can_cut else None
    elif not reading.is_split:
        encoding = Trainer(trainer.pattern).train(256)
        find = CleanCuts(encoding.stream_encoder(disallowed_special=())).find

    def spans(after: Row) -> Iterator[Span]:
        return spans_after(after, reading, paths, sizes, find, part_size)

    begin = functools.partial(_SpanCounter, trainer.pattern, reading, paths, sizes)
    pool = InProcesses(begin, spans, workers)
    for counted in pool.run(Row()):
        trainer.merge(counted.trainer)
        advance(counted.read, counted.skipped)
    return trainer


class _SpanCounter:
    """Counts spans, in a worker."""

    place = ""  # errors name it

    def __init__(
        self, pattern: Pattern, reading: Reading, paths: Sequence[str], sizes: Sequence[int]
    ):
        self._pattern = pattern
        self._reading = reading
        self._paths = paths
        self._sizes = sizes

    def run(self, span: Span) -> Iterator[Counted]:
        """The counts of a span. Raises StreamtokError for bytes that are not UTF-8; OSError."""
        reading = self._reading
        trainer = Trainer(self._pattern, errors=reading.errors, num_threads=1)
        skip_log = SkipLog()
        before = sum(self._sizes[: span.last - 1])
        for number in range(span.first, span.last):
            path = self._paths[number]
            source = open_span(reading, path, span, skip_log, _BLOCK)
            counter = DocumentCounter(trainer)
            position = span.position if number == span.first else None
            at = position["at"] if position else 0
            begin = None if reading.is_split else trainer.bytes_in - at
            try:
                for parts in source.groups(position, False):
                    counter.count(parts)
                trainer.end_document()
            except UnicodeError as error:
                where = path if not reading.is_split else f"{path}, after byte {at}"
                raise StreamtokError(counter.explain(error, where, begin)) from None
        yield Counted(trainer, before + source.read, skip_log.skipped)
