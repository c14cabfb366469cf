"""`streamtok verify`: checks finished outputs against the digests in their sidecars."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..jobs.parts.verify import verify
from . import options
from .messages import say, shown
from .options import add_option
from .progress import read_bar


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "verify",
        run,
        "check finished outputs by the digests in their sidecars",
        ["@ book.npy", "@ corpus_*.bin", "@ corpus", "@ s3://bucket/corpus --json"],
    )
    parser.add_argument(
        "outputs",
        nargs="+",
        metavar="OUTPUT",
        help="files of ids, of any format; Megatron's prefix; folders of jobs in parts; URLs",
    )
    add_option(parser, "-q --quiet", "print faults only, no summary")
    add_option(parser, "--json", "the report as one line of JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Print a line for each fault. The exit code is 1 if there are any."""
    files = [*args.outputs, *(f"{one}.bin" for one in args.outputs)]  # .bin: Megatron's prefixes
    with read_bar(args.quiet, "verifying", files) as add:
        report = verify(args.outputs, add)
    if args.json:
        row = {
            "files": report.files,
            "tokens": report.tokens,
            "documents": report.documents,
            "faults": [[one.path, one.what] for one in report.faults],
        }
        print(json.dumps(row))
        return 0 if report.is_ok else 1
    for fault in report.faults:
        print(f"{shown(fault.path)}: {fault.what}")
    if not args.quiet:
        faults = len(report.faults)
        found = "no faults" if not faults else f"{faults:,} fault{'s' if faults > 1 else ''}"
        say(f"{found} in {report.files:,} files, {report.tokens:,} tokens")
    return 0 if report.is_ok else 1
