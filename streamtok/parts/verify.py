"""Checks finished outputs and the folders of jobs in parts."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable

from ..errors import PlanError
from ..pipeline.rows import Totals
from ..pipeline.sinks.checked import Fault, OutputCheck, Report
from ..pipeline.sinks.finished import describes, first_file
from ..stores import places
from .commit import MANIFEST, add_record, manifest_lines
from .job_outputs import find_plan, folder_of
from .part import Record, record_path
from .plan import Plan

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
            plan_file = find_plan(path)
            path = first_file(path) if plan_file is None else folder_of(plan_file)
        except OSError as error:
            report.faults.append(Fault(path, error.strerror or str(error)))
            continue
        if path in seen:
            continue
        seen.add(path)
        if plan_file is None:
            OutputCheck(report).check(path)
        else:
            _check_job(path, plan_file, report)
    return report


def _check_job(folder: str, plan_file: str, report: Report) -> None:
    try:
        plan = Plan.load(plan_file).in_folder(folder)
    except (PlanError, OSError) as error:
        report.faults.append(Fault(plan_file, _said(error, plan_file)))
        return
    before = len(report.faults)
    totals = Totals(inputs=len(plan.inputs))
    for number in range(len(plan)):
        record = _check_part(plan, number, report)
        if record is not None:
            add_record(totals, record)
    if len(report.faults) > before:
        return  # the manifest is made of the records
    path = places.join(folder, MANIFEST)
    try:
        with places.open_lines(path) as file:
            lines = itertools.zip_longest(file, manifest_lines(plan, totals))
            for number, (found, expected) in enumerate(lines, 1):
                if found != expected:
                    what = f"line {number} is not what the records of the parts say"
                    report.faults.append(Fault(path, what))
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
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"the record of part {number} is damaged: {_said(error, path)}"
        report.faults.append(Fault(path, what))
        return None
    if record.plan != plan.digest or record.part != number:
        report.faults.append(Fault(path, f"it is not the record of part {number} of this plan"))
        return None
    before = report.tokens
    check = OutputCheck(report)
    for name, digests in record.files:
        where = places.join(plan.output, name)
        if describes(name):
            check.check_file(where, digests)
        else:
            check.check(where, digests)
    if record.skip_log is not None:
        log = record.skip_log
        check.check_file(places.join(plan.output, log.name), log.digests)
    names = {one.name for one in record.files}
    first = os.path.basename(plan.path(number).replace("/", os.sep))
    if plan.job.shard_tokens is None and first not in names:
        report.faults.append(Fault(path, f"it does not have {first}, the file of part {number}"))
    elif report.tokens - before != record.tokens:
        what = f"it says {record.tokens:,} tokens, but its files have {report.tokens - before:,}"
        report.faults.append(Fault(path, what))
    return record


def _said(error: Exception, path: str) -> str:
    what = error.strerror if isinstance(error, OSError) else None
    return (what or str(error)).removeprefix(f"{path} ")
