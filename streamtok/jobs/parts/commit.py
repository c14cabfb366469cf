"""Completes a job: checks that all parts are done, and writes a manifest that lists them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence

from ...errors import DocumentError, PlanError
from ..rows import Totals
from ..sinks.finished import further_file
from ..sinks.sidecar import Sidecar, skip_log_path
from ..stores import places
from .part import read_parts, totals_of
from .plan import Plan

MANIFEST = "manifest.jsonl"
SKIP_LOG = "skipped.jsonl"
_SHOWN = 10  # the maximum number of missing parts that an error lists


def commit(plan: Plan) -> Totals:
    """Check that every part is done, and write `manifest.jsonl` into the output folder.

    The manifest's first line holds the totals and the plan's digest. A line for each part follows,
    with its files and their sizes, its counts, and the numbers of its first document and token in
    the whole job. If records were skipped, `skipped.jsonl` lists them all; it is written before the
    manifest.

    The same plan gives the same manifest, so any process may commit, any number of times. Raises
    OSError, and a PlanError if parts are missing, if all records were skipped, or if one of the two
    files exists with different contents.
    """
    found = list(read_parts(plan))
    missing = [number for number, one in enumerate(found) if one is None]
    if missing:
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        raise PlanError(f"{plan.output} is not complete: these parts are missing: {shown}")
    parts = [one for one in found if one is not None]
    totals = Totals(inputs=len(plan.inputs))
    for one in parts:
        totals.add(totals_of(one))
    if totals.skipped:
        log = places.join(plan.output, SKIP_LOG)
        _write(log, lambda: skipped_lines(plan, parts))
        try:
            totals.check_skipped(log)
        except DocumentError as error:
            raise PlanError(str(error)) from None
    _write(places.join(plan.output, MANIFEST), lambda: manifest_lines(plan, parts))
    return totals


def _write(path: str, lines: Callable[[], Iterator[str]]) -> None:
    """Write a file unless it exists. Raises PlanError if its contents differ."""
    if not places.exists(path):
        try:
            places.create(path, map(str.encode, lines()))
            return
        except FileExistsError:  # another process was faster, or our own first attempt
            pass
    if first_difference(path, lines()) is not None:
        raise PlanError(f"{path} exists with other contents: remove it to commit again")


def first_difference(path: str, expected: Iterator[str]) -> int | None:
    """The number of the first line that differs from the expected one, or None. Raises OSError."""
    with places.open_lines(path) as file:
        pairs = enumerate(itertools.zip_longest(file, expected), 1)
        return next((number for number, (found, line) in pairs if found != line), None)


def skipped_lines(plan: Plan, parts: Sequence[Sidecar]) -> Iterator[str]:
    """Yield the lines of the parts' logs of skipped records."""
    for number, one in enumerate(parts):
        if one.skipped:
            with places.open_lines(skip_log_path(plan.path(number))) as file:
                yield from file


def manifest_lines(plan: Plan, parts: Sequence[Sidecar]) -> Iterator[str]:
    """Yield the lines of the manifest, each with its newline."""
    before, whole = Totals(), Totals()
    for one in parts:
        whole.add(totals_of(one))
    header = {
        "streamtok": "manifest 1",
        "plan": plan.digest,
        "encoding": plan.job.encoding,
        "digest": plan.job.digest,
        "format": plan.job.chosen,
        "parts": len(plan),
        **_counts(whole),
    }
    yield json.dumps(header) + "\n"
    for number, one in enumerate(parts):
        own = totals_of(one)
        first = plan.path(number)
        further = ((further_file(first, one, name), one.files[name]) for name in one.files)
        files = {first: one.size} | {name: about.size for name, about in further}
        row = {
            "part": number,
            "files": {name.rpartition("/")[2]: size for name, size in files.items()},
            **_counts(own),
            "first_document": before.documents,
            "first_token": before.tokens,
        }
        yield json.dumps(row) + "\n"
        before.add(own)


def _counts(totals: Totals) -> dict[str, object]:
    row = dict(vars(totals))
    del row["inputs"]
    return row
