"""`streamtok encode --dry-run`: says what the command would read and write, and does nothing."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from typing import Any

from ..parts.plan import Plan
from ..pipeline import sinks
from ..pipeline.run import Totals
from ..pipeline.sources import Input
from ..stores import places
from .messages import shown


def show_run(
    args: argparse.Namespace,
    family: sinks.Family,
    encoding: str,
    opened: Iterable[Input],
    state: dict[str, Any] | None,
) -> None:
    """Print what a run without parts would do. state: of the checkpoint that it continues from."""
    row: dict[str, Any] = {
        "inputs": [{"file": one.name, "bytes": one.size} for one in opened],
        "encoding": encoding,
        "format": family.chosen,
        "output": args.output,
        "replaces": [],
    }
    if sinks.check_output(args.output):
        shards: list[int | None] = [None]
        if args.shard_tokens is not None:
            shards = [*family.shards_there(args.output)]
            row["shard_tokens"] = args.shard_tokens
        names = [name for shard in shards for name in family.kept_names(args.output, shard)]
        row["replaces"] = [name for name in names if places.exists(name)]
    if state is not None:
        totals = Totals(**state["totals"])
        row["replaces"] = []
        row["continues_after"] = {"documents": totals.documents, "tokens": totals.tokens}
    _show(args, row)


def show_parts(args: argparse.Namespace, made: Plan, waiting: int, hint: str | None) -> None:
    """Print what a job in parts would do. waiting: parts that are not done."""
    row: dict[str, Any] = {
        "inputs": [{"file": one.path, "bytes": one.size} for one in made.inputs],
        "encoding": made.settings.encoding,
        "format": made.settings.format,
        "output": made.output,
        "parts": len(made),
        "parts_to_do": waiting,
        "part_size": made.settings.part_size,
        "replaces": [],
    }
    _show(args, row | ({"hint": hint} if hint else {}))


def _show(args: argparse.Namespace, row: dict[str, Any]) -> None:
    if args.json:
        print(json.dumps(row))
        return
    for one in row["inputs"]:
        size = "size unknown" if one["bytes"] is None else f"{one['bytes']:,} bytes"
        print(f"input     {shown(one['file'])}  {size}")
    known = [one["bytes"] or 0 for one in row["inputs"]]
    print(f"inputs    {len(known)}, {sum(known):,} bytes")
    print(f"encoding  {row['encoding']}")
    where = "standard output" if row["output"] == "-" else shown(row["output"])
    print(f"output    {where} as {row['format']}")
    if "parts" in row:
        done = row["parts"] - row["parts_to_do"]
        print(f"parts     {row['parts']} of about {row['part_size']:,} bytes; {done} are done")
    if "continues_after" in row:
        after = row["continues_after"]
        print(f"continues after {after['documents']:,} documents, {after['tokens']:,} tokens")
    for name in row["replaces"]:
        print(f"replaces  {shown(os.fspath(name))}")
    if "hint" in row:
        print(f"note      {row['hint']}")
    print("nothing was written (--dry-run)")
