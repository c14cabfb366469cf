"""`streamtok encode --task` and `--ray`: encodes in parts, into a folder."""

from __future__ import annotations

import argparse
import os
from array import array

from ..jobs.job import EncodeJob
from ..jobs.parts.commit import commit
from ..jobs.parts.part import missing_parts, run_parts
from ..jobs.parts.plan import Plan, plan_job
from ..jobs.rows import Totals
from . import encoding_options, open_inputs, overwriting
from .encode_output import resolve
from .messages import Misused, Refused, shown
from .progress import Made, Progress
from .vocabulary_output import vocabulary_files


def run(args: argparse.Namespace, job: EncodeJob) -> int:
    """Plan the job, run the parts that are not done, and commit if none is left."""
    notes = open_inputs.Notes(args.quiet, args.json)
    paths = open_inputs.input_paths(args.files, args.glob, job, notes)
    if args.output == "-" or "-" in paths:
        raise Misused("--ray and --task need files as inputs and a folder as -o")
    if os.path.isfile(args.output):
        raise Refused(f"{shown(args.output)} is a file; --ray and --task make a folder")
    overwriting.refuse_inputs([args.output], [*vocabulary_files(args.encoding), *paths])
    job = resolve(job, encoding_options.load_encoding(args.encoding), "")
    try:
        made = plan_job(paths, args.output, job)
    except ValueError as error:
        raise Refused(str(error)) from None
    made.save()
    args.continues = True
    done = Totals()
    share = range(job.task[0], len(made), job.task[1]) if job.task else range(len(made))
    waiting = array("q", (number for number in missing_parts(made) if number in share))
    args.when_stopped = f"stopped; the same command continues {args.output}"
    with Progress(args, [sum(_size(made, number) for number in waiting)], Totals()) as progress:
        read = 0
        if len(waiting) < len(share):
            done_before = len(share) - len(waiting)
            notes.say(f"{args.output}: continuing; {done_before} of {len(share)} parts are done")

        def advance(number: int, totals: Totals) -> None:
            nonlocal read
            read += _size(made, number)
            done.add(totals)
            progress.advance(read, done)

        if job.ray is not None:
            from ..ray import run_parts as run_on_ray

            run_on_ray(made, waiting, job.ray, advance=advance)
        else:
            run_parts(made, waiting, advance)
    left = next(missing_parts(made), None)
    whole = commit(made) if left is None else None
    if not args.quiet:
        done.inputs = len({made[number].input for number in waiting})
        about = Made(made.job.encoding, made.job.chosen, None, args.output)
        progress.summary(done, job.is_split, about)
        if whole is None:
            notes.say(f"this task is finished; part {left} is pending, and perhaps others")
        elif len(waiting) < len(made):
            notes.say(
                f"{args.output} is complete: {whole.inputs:,} inputs, {whole.documents:,} "
                f"documents, {whole.bytes:,} bytes, {whole.tokens:,} tokens in {len(made)} parts"
            )
    return 0


def _size(made: Plan, number: int) -> int:
    part = made[number]
    return part.stop - part.start
