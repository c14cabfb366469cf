"""One part of a plan: its text is encoded into files of its own, and a record says what they hold.

The files appear when they are complete, the record after them. A part that has its record is done.
Two processes that run the same part at once write the same bytes; the one that comes second finds
the first one's lock, and waits for it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import DocumentError, PlanError, StreamtokError
from ..parallel.threads import map_in_threads
from ..pipeline import sinks
from ..pipeline.documents import with_advice
from ..pipeline.run import InThreads, Run
from ..pipeline.skip_log import SkipLog, skip_log_path
from ..pipeline.sources.open_blocks import records_before
from ..pipeline.span_encoder import Span, SpanEncoder
from ..pipeline.spans import find_cuts, open_span
from ..stores import places
from ..stores.urls import is_url
from .bounds import span_of_part
from .plan import Plan
from .ranges import Part, input_now

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..pipeline.sources import BadRecord, FileInput, ParquetInput

RECORDS = "records"  # the folder of the records, in that of the output
_BLOCK = 1 << 19
_POLL = 0.2  # seconds
_AT_ONCE, _GROUP = 16, 1024  # records that a store is asked for


class RecordFile(NamedTuple):
    """A file of a part: its name, and what its bytes are."""

    name: str
    digests: sinks.Digests

    def as_json(self) -> list[Any]:
        """The fields as JSON values."""
        return [self.name, *self.digests]

    @classmethod
    def from_json(cls, row: list[Any]) -> RecordFile:
        """The file of `as_json`. Raises TypeError, ValueError."""
        name, size, header_size, pieces = row
        found = tuple((int(length), str(sha256)) for length, sha256 in pieces)
        return cls(str(name), sinks.Digests(int(size), int(header_size), found))


@dataclass(frozen=True)
class Record:
    """What a finished part holds: its files, and its counts.

    skipped_because: counts by reason; skip_log: a file as those. lines: how many ended in the part,
    from which `commit` finds the lines in the log.
    """

    part: int
    plan: str
    files: tuple[RecordFile, ...]
    documents: int
    bytes: int
    tokens: int
    skipped: int
    skipped_because: dict[str, int]
    skip_log: RecordFile | None
    lines: int

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        log = None if self.skip_log is None else self.skip_log.as_json()
        return asdict(self) | {"files": [one.as_json() for one in self.files], "skip_log": log}

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Record:
        """The record of `as_json`. Raises KeyError, TypeError, ValueError."""
        counts = ("part", "documents", "bytes", "tokens", "skipped", "lines")
        return cls(
            plan=str(row["plan"]),
            files=tuple(map(RecordFile.from_json, row["files"])),
            skipped_because={str(key): int(n) for key, n in row["skipped_because"].items()},
            skip_log=RecordFile.from_json(row["skip_log"]) if row["skip_log"] else None,
            **{key: int(row[key]) for key in counts},
        )


def record_path(plan: Plan, number: int) -> str:
    """Where the record of a part is. Folders of a thousand each: some file systems need that."""
    return places.join(plan.output, RECORDS, _folder(number), f"{number:06d}.json")


def _folder(number: int) -> str:
    return f"{number // 1000:04d}"


def read_record(plan: Plan, number: int) -> Record | None:
    """The record of a part that is done; None if it is not, or its files are not there.

    Raises PlanError for the record of another plan.
    """
    path = record_path(plan, number)
    try:
        found = Record.from_json(json.loads(places.read_whole(path)))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):  # damaged: the part runs again
        return None
    if found.plan != plan.digest:
        raise PlanError(f"{path} is the record of another plan: remove {plan.output}")
    logs = () if found.skip_log is None else (found.skip_log,)
    for name, digests in (*found.files, *logs):
        try:
            if places.size_of(places.join(plan.output, name)) != digests.size:
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


def run_part(plan: Plan, number: int) -> Record:
    """Encode part `number` of the plan, unless it is done; return its record.

    Any number of processes may run any parts, also the same one. Raises PlanError if the input or
    the encoding is not what it was when the plan was made, and what encoding the text raises; the
    message names the input. Only complete files remain.
    """
    part = plan[number]
    if not is_url(plan.output):
        os.makedirs(os.path.dirname(record_path(plan, number)), exist_ok=True)
    done = read_record(plan, number)
    if done is not None:
        return done
    job = plan.job
    encoding = job.open_encoding()
    family = job.family(encoding, plan.job_digest)
    with _locked(family.kept_names(plan.path(number), None)):
        if not is_url(plan.output):
            done = read_record(plan, number)  # another process may just have finished it
            if done is not None:
                return done
        _check_input(part)
        skip_log = _skip_log(plan, number)
        run, files = _encode(plan, part, encoding, family, skip_log)
        _check_input(part)  # an input that is written to meanwhile gives ids of nothing
        record = Record(
            part=number,
            plan=plan.digest,
            files=tuple(files),
            skip_log=_log_file(plan, number) if skip_log.because else None,
            lines=run.records,
            **{key: value for key, value in asdict(run.totals).items() if key != "inputs"},
        )
        text = json.dumps(record.as_json()) + "\n"
        places.write(record_path(plan, number), text.encode())
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


def _check_input(part: Part) -> None:
    one = part.input
    try:
        now = input_now(one.path)
    except FileNotFoundError:
        raise PlanError(f"{one.path} is gone since the plan was made") from None
    if now != one:
        raise PlanError(f"{one.path} has changed since the plan was made: make a new plan")


def _skip_log(plan: Plan, number: int) -> SkipLog:
    """What counts and logs the records that a part skips, beside the part's own record."""
    path = skip_log_path(record_path(plan, number).removesuffix(".json"))
    return SkipLog(path, limit=plan.job.max_bad_lines, is_part=True)


def _log_file(plan: Plan, number: int) -> RecordFile:
    """The published log as a file of the record; its name begins with the folder."""
    name = places.join(RECORDS, _folder(number), skip_log_path(f"{number:06d}"))
    data = places.read_whole(places.join(plan.output, name))
    pieces = ((len(data), hashlib.sha256(data).hexdigest()),)
    return RecordFile(name, sinks.Digests(len(data), 0, pieces))


def _encode(
    plan: Plan,
    part: Part,
    encoding: Encoding,
    family: sinks.Family,
    skip_log: SkipLog,
) -> tuple[Run, list[RecordFile]]:
    """Make the files of a part; return its run, and what its record says of the files."""
    job = plan.job
    files = sinks.Files(
        plan.path(part.number),
        family,
        shard_tokens=job.shard_tokens,
        is_exact=job.shard_exactly,
        is_hashed=True,
    )
    skipped: list[BadRecord] = []

    def open_input(number: int, span: Span) -> FileInput | ParquetInput:
        return open_span(job, part.input.path, span, skipped.append, _BLOCK)

    encoder = SpanEncoder(job, encoding, family, open_input, [True], skipped)
    with contextlib.ExitStack() as stack:
        stack.callback(encoder.release)
        stack.callback(files.discard)  # does nothing after a complete run
        stack.callback(skip_log.discard)
        try:
            span = span_of_part(part, job, lambda: find_cuts(job, encoding))
            if span is not None and span.is_relative and job.end is not None:
                begin, end = (span.position or {})["at"], job.end
                skip_log.lines_before = lambda: records_before(part.input.path, begin, end)
            pool = InThreads(encoder, span)
            run = Run(pool, files, skip_log)
            run.begin()
            run.go()
        except (StreamtokError, ValueError, RuntimeError) as error:
            _check_input(part)  # a file that was cut off looks damaged
            raise _named(error, part, encoder.place) from error
    names = (os.path.basename(name.replace("/", os.sep)) for name, _ in files.made)
    return run, [
        RecordFile(name, digests) for name, (_, digests) in zip(names, files.made, strict=True)
    ]


def _named(error: Exception, part: Part, place: str) -> Exception:
    """The error, after the names of the input, the document and the part."""
    if isinstance(error, DocumentError):  # has them, except for the part
        return PlanError(str(error))
    where = place or part.input.path
    where += f", part {part.number} (bytes {part.start} … {part.stop})"
    return PlanError(f"{where}: {with_advice(error)}")
