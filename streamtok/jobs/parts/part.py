"""Runs one part of a plan: an ordinary run over a span of one input, into files of its own.

A part is done when its sidecar exists and its files have the sizes in the sidecar. Processes that
run the same part at the same time write the same bytes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator

from ...errors import PlanError, SidecarError, StreamtokError
from ...threads import map_in_threads
from ..documents import explain
from ..rows import Row, Totals
from ..run import Run
from ..sinks.finished import further_file
from ..sinks.shards import Files
from ..sinks.sidecar import Sidecar, read_sidecar, skip_log_path
from ..span_encoder import Event
from ..spans import begin_encoder, find_cuts, span_between
from ..stores import places
from ..stores.urls import is_url
from .plan import Plan

_AT_ONCE, _GROUP = 16, 1024  # sidecars to request from a store: concurrently, per batch
_SHOWN = 5  # errors in a message


def read_part(plan: Plan, number: int) -> Sidecar | None:
    """Read the sidecar of a part; return None unless the part is done.

    Raises OSError, and a PlanError if the files belong to a different plan.
    """
    path = plan.path(number)
    try:
        found = read_sidecar(path)
        if found is None:
            return None
        if found.job != plan.part_digest(number):
            raise PlanError(f"{path} is the file of another plan: remove {plan.output}")
        files = [(path, found.size)]
        files += ((further_file(path, found, one), about.size)
                  for one, about in found.files.items())  # fmt: skip
        if found.skipped:
            places.size_of(skip_log_path(path))
        return found if all(places.size_of(name) == size for name, size in files) else None
    except (FileNotFoundError, SidecarError):  # the part runs again
        return None


def read_parts(plan: Plan) -> Iterator[Sidecar | None]:
    """Yield the result of `read_part` for each part, in order.

    From a store, several sidecars are read at a time.
    """
    numbers = range(len(plan))
    if not is_url(plan.output):
        yield from (read_part(plan, number) for number in numbers)
        return
    read = functools.partial(read_part, plan)
    for start in range(0, len(plan), _GROUP):
        yield from map_in_threads(read, numbers[start : start + _GROUP], _AT_ONCE)


def missing_parts(plan: Plan) -> Iterator[int]:
    """The numbers of the parts that are not done, in order. Reads all sidecars."""
    return (number for number, found in enumerate(read_parts(plan)) if found is None)


def totals_of(found: Sidecar) -> Totals:
    """The totals that a part's sidecar records."""
    return Totals(
        documents=found.documents,
        bytes=found.text_bytes or 0,
        tokens=found.tokens,
        skipped=sum(found.skipped.values()),
        skipped_because=dict(found.skipped),
    )


def run_parts(
    plan: Plan,
    numbers: Iterable[int],
    advance: Callable[[int, Totals], None] = lambda number, totals: None,
) -> None:
    """Run parts one after another; call `advance` with the number and the totals of each.

    If a part cannot be encoded, the others still run; a PlanError is raised at the end.
    """
    errors = []
    for number in numbers:
        try:
            advance(number, run_part(plan, number))
        except PlanError as error:
            errors.append(str(error))
    raise_errors(errors)


def raise_errors(errors: list[str]) -> None:
    """Raise PlanError with the first few errors, if there are any."""
    if errors:
        more = f"\nand {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
        raise PlanError("\n".join(errors[:_SHOWN]) + more)


def run_part(plan: Plan, number: int) -> Totals:
    """Encode part `number` of the plan, unless it is done; return its totals.

    Any number of processes may run any parts, even the same part. Raises OSError and PlanError. The
    PlanError names the input if its text cannot be encoded or if it has changed since the plan was
    made, and names the encoding if that has changed. Incomplete files are removed.
    """
    part = plan[number]
    if (done := read_part(plan, number)) is not None:
        return totals_of(done)
    places.make_folder(plan.output)
    part.input.check()
    job, path, target = plan.job, part.input.path, plan.path(part.number)
    family = job.family(job.open_encoding(), plan.part_digest(part.number))
    files = Files(target, family, has_log=True)
    encoder = begin_encoder(job, [path], [part.input.size], job.threads or 1)
    with contextlib.ExitStack() as stack:
        stack.callback(files.discard)  # does nothing after a complete run
        try:
            find = find_cuts(job, job.open_encoding()) if part.input.is_cut else None
            span = span_between(path, part.start, part.stop, job, find)

            def events(row: Row) -> Iterator[Event]:
                yield from encoder.run_after(row, span)
                part.input.check()  # ids of an input that has changed meanwhile are meaningless

            run = Run(events, files, is_part=True)
            run.begin()
            run.go()
        except (StreamtokError, ValueError, RuntimeError) as error:
            part.input.check()  # a file truncated meanwhile looks damaged
            where = encoder.place or path
            where += f", part {part.number} (bytes {part.start} … {part.stop})"
            raise PlanError(explain(error, where)) from error
    return run.totals
