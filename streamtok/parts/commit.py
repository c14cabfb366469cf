"""Commit: all parts are there, so the job is done; a manifest says what they hold, in order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict

from ..errors import PlanError
from ..pipeline import sinks
from ..pipeline.rows import Totals
from ..pipeline.sinks.finished import Finished, describes
from ..pipeline.skip_log import reasons
from ..stores import places
from .part import Record, read_records, skipped_path
from .plan import Plan

MANIFEST = "manifest.jsonl"
SKIP_LOG = "skipped.jsonl"
_SHOWN = 10  # missing parts that an error names


def commit(plan: Plan) -> Totals:
    """Check that every part is done, and write `manifest.jsonl` into the output folder.

    If records were skipped, `skipped.jsonl` names them all, written first.

    Its first line holds the totals and the plan's digest, then comes a line for each part: its
    files with their sizes, its counts, and at which document and token of the whole it begins. The
    same plan gives the same manifest, so it does not matter who commits, or how often. Raises
    PlanError naming the parts that are missing, or if all records were skipped or more than the
    plan allows; OSError.
    """
    totals = Totals(inputs=len(plan.inputs))
    missing: list[int] = []
    for number, record in enumerate(read_records(plan)):
        if record is None:
            missing.append(number)
            if len(missing) > _SHOWN:
                break
        else:
            add_record(totals, record)
    if missing:
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        raise PlanError(f"{plan.output} is not complete: these parts are missing: {shown}")
    if totals.skipped:
        _write(places.join(plan.output, SKIP_LOG), lambda: skipped_lines(plan))
        _check_skipped(plan, totals)
    _write(places.join(plan.output, MANIFEST), lambda: manifest_lines(plan, totals))
    return totals


def _check_skipped(plan: Plan, totals: Totals) -> None:
    """Raise PlanError if too many records were skipped, or all of them."""
    limit = plan.job.max_bad_lines
    about = f"({reasons(totals.skipped_because)}); {places.join(plan.output, SKIP_LOG)} names them"
    if not totals.documents:
        raise PlanError(
            f"nothing was encoded: {totals.skipped:,} lines or rows were skipped {about}"
        )
    if limit is not None and totals.skipped > limit:
        raise PlanError(
            f"{totals.skipped:,} lines or rows were skipped, and --max-bad-lines allows "
            f"{limit:,} {about}"
        )


def _write(path: str, lines: Callable[[], Iterator[str]]) -> None:
    """Write a file, unless it is there. Raises PlanError if it says something else."""
    if not places.exists(path):
        try:
            places.create(path, map(str.encode, lines()))
            return
        except FileExistsError:  # another driver was faster, or our own first attempt
            pass
    with places.open_lines(path) as file:
        if all(a == b for a, b in itertools.zip_longest(file, lines())):
            return
    raise PlanError(f"{path} is there and says something else: remove it to commit again")


def skipped_lines(plan: Plan) -> Iterator[str]:
    """The lines of the parts' logs, with their lines in the inputs instead of the parts."""
    lines = 0  # of the parts before, in this input
    for number, record in enumerate(read_records(plan)):
        if record is None:
            raise PlanError(f"part {number} of {plan.output} has just been removed")
        if plan[number].start == 0:
            lines = 0
        if record.skipped:
            with places.open_lines(places.join(plan.output, skipped_path(number))) as file:
                for row in map(json.loads, file):
                    if "line" in row:
                        row["line"] += lines
                    yield json.dumps(row) + "\n"
        lines += record.lines


def add_record(totals: Totals, record: Record) -> None:
    """Add what a part has done to the totals."""
    totals.documents += record.documents
    totals.bytes += record.bytes
    totals.tokens += record.tokens
    totals.skipped += record.skipped
    for reason, count in record.skipped_because.items():
        totals.skipped_because[reason] = totals.skipped_because.get(reason, 0) + count


def manifest_lines(plan: Plan, totals: Totals) -> Iterator[str]:
    """The lines of the manifest, each with its newline. Raises PlanError for a missing part."""
    job = plan.job
    header = {
        "streamtok": "manifest 1",
        "plan": plan.digest,
        "encoding": job.encoding,
        "digest": job.digest,
        "format": job.chosen,
        "parts": len(plan),
        "documents": totals.documents,
        "bytes": totals.bytes,
        "tokens": totals.tokens,
        "skipped": totals.skipped,
        "skipped_because": totals.skipped_because,
    }
    yield json.dumps(header) + "\n"
    before = Totals()
    for number, record in enumerate(read_records(plan)):
        if record is None:
            raise PlanError(f"part {number} of {plan.output} has just been removed")
        yield json.dumps(_row(record, before)) + "\n"
        add_record(before, record)


def _row(record: Record, before: Totals) -> dict[str, object]:
    row = asdict(record)
    del row["plan"]
    return row | {"first_document": before.documents, "first_token": before.tokens}


def outputs_of(plan: Plan) -> Iterator[Finished]:
    """The outputs of a finished job, in order of its parts. Raises OSError, SidecarError, and
    PlanError if a part is not done.
    """
    job = plan.job
    for number, record in enumerate(read_records(plan)):
        if record is None:
            raise PlanError(
                f"{plan.output}: part {number} is not done, or its files were changed: the same "
                "encode command makes it"
            )
        names = data_files(record)
        for name in names:
            path = places.join(plan.output, name)
            about = sinks.read_description(path)
            if about is None:  # --no-sidecar: the plan and the record say it
                about = sinks.Sidecar(
                    encoding=job.encoding,
                    digest=job.digest,
                    format=job.chosen,
                    dtype=None,
                    tokens=record.tokens,
                    documents=record.documents if len(names) == 1 else 0,
                    size=places.size_of(path),
                )
            yield Finished(path, about, job.chosen)


def data_files(record: Record) -> list[str]:
    """The files of ids of a part."""
    return [
        name for name in record.files if not describes(name) and name != skipped_path(record.part)
    ]
