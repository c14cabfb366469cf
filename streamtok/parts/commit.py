"""Commit: all parts are there, so the job is done; a manifest says what they hold, in order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from ..errors import PlanError
from ..pipeline.run import Totals
from ..stores import places
from .part import Record, read_records
from .plan import Plan

__all__ = ["MANIFEST", "commit", "missing_parts"]

MANIFEST = "manifest.jsonl"
_SHOWN = 10  # missing parts that an error names


def missing_parts(plan: Plan) -> Iterator[int]:
    """The parts that are not done, in order. Reads one record for each part."""
    return (number for number, record in enumerate(read_records(plan)) if record is None)


def commit(plan: Plan) -> Totals:
    """Check that every part is done, and write `manifest.jsonl` into the output folder.

    Its first line holds the totals and the plan's digest, then comes a line for each part: its
    files with sizes and SHA-256, its counts, and at which document and token of the whole it
    begins. The same plan gives the same manifest, so it does not matter who commits, or how often.
    Raises PlanError naming the parts that are missing, OSError.
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
    path = places.join(plan.output, MANIFEST)
    if not places.exists(path):
        try:
            places.create(path, map(str.encode, manifest_lines(plan, totals)))
            return totals
        except FileExistsError:  # another driver was faster, or our own first attempt
            pass
    with places.open_lines(path) as file:
        if all(a == b for a, b in itertools.zip_longest(file, manifest_lines(plan, totals))):
            return totals
    raise PlanError(f"{path} is there and says something else: remove it to commit again")


def add_record(totals: Totals, record: Record) -> None:
    """Add the counts of a part."""
    totals.documents += record.documents
    totals.bytes += record.bytes
    totals.tokens += record.tokens
    totals.skipped += record.skipped


def manifest_lines(plan: Plan, totals: Totals) -> Iterator[str]:
    """The lines of the manifest, each with its newline. Raises PlanError for a missing part."""
    settings = plan.settings
    header = {
        "streamtok": "manifest 1",
        "plan": plan.digest,
        "encoding": settings.encoding,
        "digest": settings.digest,
        "format": settings.format,
        "parts": len(plan),
        "documents": totals.documents,
        "bytes": totals.bytes,
        "tokens": totals.tokens,
        "skipped": totals.skipped,
    }
    yield json.dumps(header) + "\n"
    before = Totals()
    for number, record in enumerate(read_records(plan)):
        if record is None:
            raise PlanError(f"part {number} of {plan.output} has just been removed")
        yield json.dumps(_row(record, before)) + "\n"
        add_record(before, record)


def _row(record: Record, before: Totals) -> dict[str, object]:
    row = record.as_json()
    del row["plan"]
    return row | {"first_document": before.documents, "first_token": before.tokens}
