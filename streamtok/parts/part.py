"""One part of a plan: its text is encoded into files of its own, and a record says what they hold.

The files appear when they are complete, the record after them. A part that has its record is done.
Two processes that run the same part at once write the same bytes; the one that comes second finds
the first one's lock, and waits for it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..errors import DocumentError, PlanError, StreamtokError
from ..parallel.threads import map_in_threads
from ..pipeline import sinks
from ..pipeline.documents import with_advice
from ..pipeline.run import Run, Totals
from ..pipeline.skip_log import SkipLog, skip_log_path
from ..pipeline.sources import Feed
from ..stores import places
from ..stores.urls import is_url
from .bounds import find_cuts
from .part_text import PartText, open_part_text
from .plan import Plan
from .ranges import Part, input_now

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..pipeline.documents import DocumentEncoder

RECORDS = "records"  # the folder of the records, in that of the output
_BLOCK = 1 << 19
_POLL = 0.2  # seconds
_AT_ONCE, _GROUP = 16, 1024  # records that a store is asked for


@dataclass(frozen=True)
class Record:
    """What a finished part holds: its files (name, bytes, sha256), and its counts.

    skipped_because: counts by reason; skip_log: a file as those. lines, text: how many lines ended
    in the part, and the bytes of its text, from which `commit` finds the places in the log.
    """

    part: int
    plan: str
    files: tuple[tuple[str, int, str], ...]
    documents: int
    bytes: int
    tokens: int
    skipped: int
    skipped_because: dict[str, int]
    skip_log: tuple[str, int, str] | None
    lines: int
    text: int

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        log = None if self.skip_log is None else list(self.skip_log)
        return asdict(self) | {"files": [list(one) for one in self.files], "skip_log": log}

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Record:
        """The record of `as_json`. Raises KeyError, TypeError, ValueError."""
        counts = ("part", "documents", "bytes", "tokens", "skipped", "lines", "text")
        return cls(
            plan=str(row["plan"]),
            files=tuple(map(_file_from_json, row["files"])),
            skipped_because={str(key): int(n) for key, n in row["skipped_because"].items()},
            skip_log=_file_from_json(row["skip_log"]) if row["skip_log"] else None,
            **{key: int(row[key]) for key in counts},
        )


def _file_from_json(row: list[Any]) -> tuple[str, int, str]:
    name, size, sha256 = row
    return str(name), int(size), str(sha256)


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
    for name, size, _ in (*found.files, *logs):
        try:
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
        totals, files, read = _encode(plan, part, encoding, family, skip_log)
        _check_input(part)  # an input that is written to meanwhile gives ids of nothing
        lines, size = read.seen if read is not None else (0, 0)
        record = Record(
            part=number,
            plan=plan.digest,
            files=tuple(files),
            skip_log=_log_file(number, skip_log),
            lines=lines,
            text=size,
            **{key: value for key, value in asdict(totals).items() if key != "inputs"},
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


def _log_file(number: int, skip_log: SkipLog) -> tuple[str, int, str] | None:
    """The published log as a file of the record; its name begins with the folder."""
    if skip_log.published is None or skip_log.path is None:
        return None
    name = skip_log_path(f"{number:06d}")
    about = skip_log.published
    return places.join(RECORDS, _folder(number), name), about["size"], about["sha256"]


def _encode(
    plan: Plan,
    part: Part,
    encoding: Encoding,
    family: sinks.Family,
    skip_log: SkipLog,
) -> tuple[Totals, list[tuple[str, int, str]], PartText | None]:
    """Make the files of a part; return its totals, what its record says of them, and its text."""
    job = plan.job
    encoder = job.open_encoder(encoding)
    files = sinks.Files(
        plan.path(part.number),
        family,
        shard_tokens=job.shard_tokens,
        is_exact=job.shard_exactly,
        is_hashed=True,
    )
    with contextlib.ExitStack() as stack:
        stack.callback(encoder.release)
        stack.callback(files.discard)  # does nothing after a complete run
        stack.callback(skip_log.discard)
        text = None
        try:
            find_cut = functools.partial(find_cuts, job, encoding)
            text = open_part_text(part, job, find_cut, block_size=_BLOCK, on_bad=skip_log)
            skip_log.begin = text.begin
            if not job.is_split and part.start > 0:
                encoder.begin_inside(text.begin)
            feed = Feed([text.source] if text.source is not None else [], text.position)
            run = Run(feed, encoder, files, skip_log=skip_log)
            run.go()
        except (StreamtokError, ValueError, RuntimeError) as error:
            _check_input(part)  # a file that was cut off looks damaged
            raise _named(error, part, encoder) from error
        return run.totals, files.complete_files, text


def _named(error: Exception, part: Part, encoder: DocumentEncoder) -> Exception:
    """The error, after the names of the input, the document and the part."""
    if isinstance(error, DocumentError):  # has them, except for the part
        return PlanError(str(error))
    where = encoder.failed_place or part.input.path
    where += f", part {part.number} (bytes {part.start} … {part.stop})"
    return PlanError(f"{where}: {with_advice(error)}")
