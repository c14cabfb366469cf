"""`streamtok join`: makes one output of the parts of a job, or of shards."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from ..parts.job_outputs import find_plan, outputs_of_job
from ..parts.join import family_of, join_into
from ..pipeline import sinks
from ..pipeline.sinks.finished import Finished, find_finished
from ..stores.urls import is_url
from . import options, overwriting
from .messages import Misused, Refused, say, shown
from .options import add_option


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "join",
        run,
        "make one output of the parts of a job, or of shards",
        ["@ corpus -o corpus.bin", "@ corpus_0*.npy -o corpus.npy"],
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="the folder of a finished job in parts; files of ids, in this order; URLs",
    )
    options.add_output(parser)
    options.add_force(parser)
    add_option(parser, "-q --quiet", "no summary")


def run(args: argparse.Namespace) -> int:
    """The output has the format of the inputs, and the bytes that one process would have made."""
    if args.output == "-" or not sinks.check_output(args.output):
        raise Misused("join needs a file: give one with -o")
    sources: list[Finished] = []
    for one in args.inputs:
        plan_file = find_plan(one)
        sources += [_found(one)] if plan_file is None else outputs_of_job(plan_file)
    if not sources:
        raise Refused("there is nothing to join")
    if (max_id := sources[0].max_id) is None:
        path = shown(sources[0].path)
        raise Refused(f"{path}: nothing tells the highest id of its vocabulary")
    family = family_of(sources, max_id)
    names = family.kept_names(args.output, None)
    read = dict.fromkeys([*args.inputs, *(one.path for one in sources)])
    overwriting.refuse_inputs(names, read)
    with contextlib.ExitStack() as stack:
        stack.callback(sinks.Locks(names).close)
        if not args.force and (found := sinks.find_foreign(family, args.output)) is not None:
            raise overwriting.already_exists(*found)
        # With the hidden names of the join before: if it was killed, they are taken.
        sink = sinks.Files(args.output, family, is_resumable=not is_url(args.output))
        stack.callback(sink.discard)  # does nothing after a complete run
        try:
            totals = join_into(sink, sources)
        except ValueError as error:
            raise Refused(str(error)) from None
    if not args.quiet:
        say(
            f"{shown(names[0])}: {totals.tokens:,} tokens, {totals.documents:,} documents of "
            f"{totals.inputs:,} files"
        )
    return 0


def _found(path: str) -> Finished:
    try:
        return find_finished(path)
    except ValueError as error:
        raise Refused(f"{shown(path)}: {error}") from None
