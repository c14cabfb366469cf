"""Checks finished outputs and the folders of jobs in parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from ...errors import PlanError
from ..sinks.checked import Fault, Report, check_output
from ..sinks.finished import first_file
from ..stores import places
from .commit import MANIFEST, SKIP_LOG, first_difference, manifest_lines, skipped_lines
from .plan import PLAN_FILE, Plan, find_plan

__all__ = ["Fault", "Report"]  # of another module


def verify(
    outputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    on_read: Callable[[int], None] = lambda size: None,
) -> Report:
    """Check finished outputs against what was recorded when they were made.

    outputs: paths or URLs of files of ids, of their sidecars or indexes, or of the folders of jobs
    in parts. Compares sizes and SHA-256 digests with the sidecars, and parts with the plan and the
    manifest. Returns a report whose `faults` give the file, the error and its position. Damaged and
    unreadable files do not raise exceptions. Reads every file once, in blocks, and calls `on_read`
    with the size of each block.
    """
    given = [outputs] if isinstance(outputs, (str, os.PathLike)) else outputs
    report = Report(on_read=on_read)
    seen: set[str] = set()
    for output in given:
        one = os.fspath(output)
        path = one.rstrip("/") or one
        try:
            folder = find_plan(path)
            path = folder or first_file(path)
        except OSError as error:
            report.add(path, error)
            continue
        if path in seen:
            continue
        seen.add(path)
        if folder is None:
            check_output(path, report)
        else:
            _check_job(folder, report)
    return report


def _check_job(folder: str, report: Report) -> None:
    try:
        plan = Plan.load(folder)
    except (PlanError, OSError) as error:
        report.add(places.join(folder, PLAN_FILE), error)
        return
    before = len(report.faults)
    parts = []
    for number in range(len(plan)):
        path = plan.path(number)
        if not places.exists(path):
            report.add(path, "it is missing: run the same encode command again to write it")
        elif (found := check_output(path, report)) is not None:
            if found.job != plan.part_digest(number):
                report.add(path, f"it is not part {number} of this plan")
            parts.append(found)
    if len(report.faults) > before:
        return  # the expected manifest is computed from the sidecars
    _compare(places.join(folder, MANIFEST), manifest_lines(plan, parts), report)
    if any(one.skipped for one in parts):
        _compare(places.join(folder, SKIP_LOG), skipped_lines(plan, parts), report)


def _compare(path: str, expected: Iterator[str], report: Report) -> None:
    """Check a file of the whole job against lines computed from the parts."""
    try:
        if (number := first_difference(path, expected)) is not None:
            report.add(path, f"line {number} does not match the parts")
    except FileNotFoundError:
        what = "it is missing, so the job is not finished: the same encode command writes it"
        report.add(path, what)
    except (OSError, ValueError) as error:
        report.add(path, error)
