"""The finished outputs that a user names: files, and folders of jobs in parts."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..errors import PlanError
from ..pipeline import sinks
from ..pipeline.sinks.finished import Finished, describes
from ..stores import places
from .part import read_records
from .plan import PLAN_FILE, Plan


def find_plan(path: str) -> str | None:
    """The plan's file if `path` is that, or the folder of a job in parts. Raises OSError."""
    if os.path.basename(path) == PLAN_FILE:
        return path
    inside = places.join(path.rstrip("/") or path, PLAN_FILE)
    return inside if places.exists(inside) else None


def folder_of(plan_file: str) -> str:
    """The folder of the job whose plan's file this is."""
    return plan_file[: -len(PLAN_FILE)].rstrip("/") or os.curdir


def outputs_of_job(plan_file: str) -> Iterator[Finished]:
    """The outputs of a finished job, in order of its parts; the folder may have been moved.

    Raises OSError, SidecarError, and PlanError if a part is not done.
    """
    folder = folder_of(plan_file)
    plan = Plan.load(plan_file).in_folder(folder)
    job = plan.job
    for number, record in enumerate(read_records(plan)):
        if record is None:
            raise PlanError(
                f"{folder}: part {number} is not done, or its files were changed: the same encode "
                "command makes it"
            )
        names = [one.name for one in record.files if not describes(one.name)]
        for name in names:
            path = places.join(folder, name)
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
