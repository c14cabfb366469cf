"""One part of a plan: its text is encoded into files of its own, and a record says what they hold.

A part is a plain run, over a span of one input. Its files appear when they are complete, the record
after them. A part that has its record is done. Two processes that run the same part at once write
the same bytes; the one that comes second finds the first one's lock, and waits for it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import PlanError, StreamtokError
from ..parallel.threads import map_in_threads
from ..pipeline import sinks
from ..pipeline.documents import explain
from ..pipeline.run import Run
from ..pipeline.skip_log import SkipLog, skip_log_path
from ..pipeline.sources.open_blocks import records_before
from ..pipeline.spans import begin_encoder, find_cuts, span_between
from ..stores import places
from ..stores.urls import is_url
from .plan import Part, Plan

RECORDS = "records"  # the folder of the records, in that of the output
_POLL = 0.2  # seconds
_AT_ONCE, _GROUP = 16, 1024  # records that a store is asked for
_SHOWN = 5  # errors in a message


@dataclass(frozen=True)
class Record:
    """What a finished part holds: its files with their sizes, and its counts.

    skipped_because: counts by reason. lines: how many ended in the part, from which `commit` finds
    the lines in the log of what was skipped, which is one of the files.
    """

    part: int
    plan: str
    files: dict[str, int]
    documents: int
    bytes: int
    tokens: int
    skipped: int
    skipped_because: dict[str, int]
    lines: int

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Record:
        """The record of its fields as JSON values. Raises TypeError, ValueError, AttributeError."""
        made = cls(**row)
        counts = [made.part, made.documents, made.bytes, made.tokens, made.skipped, made.lines]
        counts += [*made.files.values(), *made.skipped_because.values()]
        if any(type(one) is not int or one < 0 for one in counts):
            raise ValueError("a count is not a number")
        return made


def record_path(plan: Plan, number: int) -> str:
    """Where the record of a part is."""
    return places.join(plan.output, RECORDS, f"{number:06d}.json")


def skipped_path(number: int) -> str:
    """The log of what a part has skipped, from the folder of the output."""
    return places.join(RECORDS, skip_log_path(f"{number:06d}"))


def read_record(plan: Plan, number: int) -> Record | None:
    """The record of a part that is done; None if it is not, or its files are not there.

    Raises PlanError for the record of another plan.
    """
    path = record_path(plan, number)
    try:
        found = Record.from_json(json.loads(places.read_whole(path)))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, AttributeError, RecursionError):  # damaged: it runs again
        return None
    if found.plan != plan.digest:
        raise PlanError(f"{path} is the record of another plan: remove {plan.output}")
    try:
        for name, size in found.files.items():
            if places.size_of(places.join(plan.output, name)) != size:
                return None
    except FileNotFoundError:
        return None
    return found


def read_records(plan: Plan) -> Iterator[Record | None]:
    """`read_record` of each part, in order. A store is asked for several at a time."""
    numbers = range(len(plan))
    if not is_url(plan.output):
        yield from (read_record(plan, number) for number in numbers)
        return
    read = functools.partial(read_record, plan)
    for start in range(0, len(plan), _GROUP):
        yield from map_in_threads(read, numbers[start : start + _GROUP], _AT_ONCE)


def missing_parts(plan: Plan) -> Iterator[int]:
    """The parts that are not done, in order. Reads one record for each part."""
    return (number for number, record in enumerate(read_records(plan)) if record is None)


def run_parts(
    plan: Plan, numbers: Iterable[int], advance: Callable[[Record], None] = lambda record: None
) -> None:
    """Run parts one after another; `advance` gets the record of each.

    A part whose text cannot be encoded does not stop the others: PlanError is raised at the end.
    """
    errors = []
    for number in numbers:
        try:
            advance(run_part(plan, number))
        except PlanError as error:
            errors.append(str(error))
    raise_errors(errors)


def raise_errors(errors: list[str]) -> None:
    """Raise PlanError with the first of the errors, if there are any."""
    if errors:
        more = f"\nand {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
        raise PlanError("\n".join(errors[:_SHOWN]) + more)


def run_part(plan: Plan, number: int) -> Record:
    """Encode part `number` of the plan, unless it is done; return its record.

    Any number of processes may run any parts, also the same one. Raises PlanError if the input or
    the encoding is not what it was when the plan was made, and what encoding the text raises; the
    message names the input. Only complete files remain.
    """
    part = plan[number]
    path = record_path(plan, number)
    if not is_url(plan.output):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    if (done := read_record(plan, number)) is not None:
        return done
    job = plan.job
    family = job.family(job.open_encoding(), plan.digest)
    with _locked(family.kept_names(plan.path(number), None)):
        # Another process may just have finished it.
        if not is_url(plan.output) and (done := read_record(plan, number)) is not None:
            return done
        part.input.check()
        record = _encode(plan, part, family)
        part.input.check()  # an input that is written to meanwhile gives ids of nothing
        places.write(path, json.dumps(asdict(record)).encode() + b"\n")
    return record


@contextlib.contextmanager
def _locked(names: list[str]) -> Iterator[None]:
    while True:
        try:
            locks = sinks.Locks(names)
            break
        except BlockingIOError:
            time.sleep(_POLL)
    try:
        yield
    finally:
        locks.close()


def _encode(plan: Plan, part: Part, family: sinks.Family) -> Record:
    """Make the files of a part, and the record of them."""
    job, path = plan.job, part.input.path
    log = skipped_path(part.number)
    skip_log = SkipLog(places.join(plan.output, log), limit=job.max_bad_lines, is_part=True)
    files = sinks.Files(
        plan.path(part.number), family, shard_tokens=job.shard_tokens, is_exact=job.shard_exactly
    )
    encoder = begin_encoder(job, plan.digest, [path], [part.input.size], job.threads or 1)
    with contextlib.ExitStack() as stack:
        stack.callback(files.discard)  # does nothing after a complete run
        stack.callback(skip_log.discard)
        try:
            find = find_cuts(job, job.open_encoding()) if part.input.is_cut else None
            span = span_between(path, part.start, part.stop, job, find)
            if span is not None and span.is_relative and job.end is not None:
                begin, end = (span.position or {})["at"], job.end
                skip_log.lines_before = lambda: records_before(path, begin, end)
            run = Run(functools.partial(encoder.run_after, span=span), files, skip_log)
            run.begin()
            run.go()
        except (StreamtokError, ValueError, RuntimeError) as error:
            part.input.check()  # a file that was cut off looks damaged
            where = encoder.place or path
            where += f", part {part.number} (bytes {part.start} … {part.stop})"
            raise PlanError(explain(error, where)) from error
    sizes = {os.path.basename(name.replace("/", os.sep)): size for name, size in files.made}
    if skip_log.because:
        sizes[log] = places.size_of(places.join(plan.output, log))
    counts = asdict(run.totals)
    del counts["inputs"]
    return Record(part.number, plan.digest, sizes, lines=run.records, **counts)
