"""Checks finished outputs and the folders of jobs in parts."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator

from ..errors import PlanError
from ..pipeline.rows import Totals
from ..pipeline.sinks.checked import Fault, OutputCheck, Report
from ..pipeline.sinks.finished import first_file
from ..stores import places
from .commit import MANIFEST, SKIP_LOG, add_record, data_files, manifest_lines, skipped_lines
from .part import Record, record_path
from .plan import PLAN_FILE, Plan, find_plan

__all__ = ["Fault", "Report"]  # of another module


def verify(outputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Report:
    """Check finished outputs against what was recorded when they were made.

    outputs: files of ids, their sidecars or indexes, or the folders of jobs in parts; paths or
    URLs. Compares sizes and SHA-256 with the sidecars, schemas and records, indexes with the ids,
    ids with the vocabulary, and parts with the plan and the manifest. Returns a report whose
    `faults` name each file and what is wrong where. Nothing is raised for damage or for unreadable
    files. Reads every file once, in the memory of a few blocks. Raises MissingLibraryError for
    Parquet without pyarrow.
    """
    given = [outputs] if isinstance(outputs, (str, os.PathLike)) else outputs
    report = Report()
    seen: set[str] = set()
    for output in given:
        one = os.fspath(output)
        path = one.rstrip("/") or one
        try:
            folder = find_plan(path)
            path = folder or first_file(path)
        except OSError as error:
            report.faults.append(Fault(path, error.strerror or str(error)))
            continue
        if path in seen:
            continue
        seen.add(path)
        if folder is None:
            OutputCheck(report).check(path)
        else:
            _check_job(folder, report)
    return report


def _check_job(folder: str, report: Report) -> None:
    try:
        plan = Plan.load(folder, is_moved=True)
    except (PlanError, OSError) as error:
        path = places.join(folder, PLAN_FILE)
        report.faults.append(Fault(path, _said(error, path)))
        return
    before = len(report.faults)
    totals = Totals(inputs=len(plan.inputs))
    for number in range(len(plan)):
        record = _check_part(plan, number, report)
        if record is not None:
            add_record(totals, record)
    if len(report.faults) > before:
        return  # the manifest is made of the records
    _compare(places.join(folder, MANIFEST), manifest_lines(plan, totals), report)
    if totals.skipped:
        _compare(places.join(folder, SKIP_LOG), skipped_lines(plan), report)


def _compare(path: str, expected: Iterator[str], report: Report) -> None:
    """Check a file that is made of what the parts have."""
    try:
        with places.open_lines(path) as file:
            for number, (found, line) in enumerate(itertools.zip_longest(file, expected), 1):
                if found != line:
                    report.faults.append(Fault(path, f"line {number} is not what the parts say"))
                    break
    except FileNotFoundError:
        what = "it is missing, so the job is not finished: the same encode command writes it"
        report.faults.append(Fault(path, what))
    except (OSError, ValueError) as error:
        report.faults.append(Fault(path, _said(error, path)))


def _check_part(plan: Plan, number: int, report: Report) -> Record | None:
    """Check the files of a part against its record; return the record, if there is one."""
    path = record_path(plan, number)
    try:
        record = Record.from_json(json.loads(places.read_whole(path)))
    except FileNotFoundError:
        what = f"part {number} is not done: the same encode command goes on with it"
        report.faults.append(Fault(path, what))
        return None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        what = f"the record of part {number} is damaged: {_said(error, path)}"
        report.faults.append(Fault(path, what))
        return None
    if record.plan != plan.digest or record.part != number:
        report.faults.append(Fault(path, f"it is not the record of part {number} of this plan"))
        return None
    before = report.tokens
    check = OutputCheck(report)
    for name in data_files(record):
        check.check(places.join(plan.output, name))
    for name, size in record.files.items():
        where = places.join(plan.output, name)
        try:
            found = places.size_of(where)
        except OSError as error:
            report.faults.append(Fault(where, _said(error, where)))
            continue
        if found != size:
            what = f"it has {found:,} bytes, not the {size:,} that were recorded"
            report.faults.append(Fault(where, what))
    first = os.path.basename(plan.path(number).replace("/", os.sep))
    if plan.job.shard_tokens is None and first not in record.files:
        report.faults.append(Fault(path, f"it does not have {first}, the file of part {number}"))
    elif report.tokens - before != record.tokens:
        what = f"it says {record.tokens:,} tokens, but its files have {report.tokens - before:,}"
        report.faults.append(Fault(path, what))
    return record


def _said(error: Exception, path: str) -> str:
    what = error.strerror if isinstance(error, OSError) else None
    return (what or str(error)).removeprefix(f"{path} ")
