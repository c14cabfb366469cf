"""The output of `encode`: its format, its files, what it may overwrite, and its sink."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from ..encoding import Encoding
from ..engines.template import NO_TEMPLATE
from ..parts.settings import Settings
from ..pipeline import sinks
from ..pipeline.checkpoint import Checkpoint, checkpoint_path
from ..pipeline.skip_log import SkipLog, is_skip_log, skip_log_path
from ..pipeline.sources import Reading
from ..stores import places
from ..stores.urls import is_url
from . import encoding_options, overwriting
from .messages import Misused, Refused, is_terminal, shown
from .vocabulary_output import vocabulary_files

END = "<|endoftext|>"


def check_format(args: argparse.Namespace, max_id: int) -> str:
    """The format of the output. Raises Refused for options that cannot be combined."""
    try:
        chosen = sinks.choose_format(args.format, args.output, max_id)
    except ValueError as error:
        raise Misused(str(error)) from None
    if args.output == "-" and chosen in ("u16", "u32") and is_terminal(sys.stdout):
        raise Refused(f"{chosen} cannot go to a terminal: use -o FILE, a pipe or --format text")
    if args.resume and args.output == "-":
        raise Misused("--resume needs a file: give one with -o")
    if args.resume and is_url(args.output):
        raise Misused(
            "--resume keeps unfinished files, which stores cannot: --workers writes parts to a "
            "URL, and the same command continues them"
        )
    if args.shard_tokens is not None and args.output == "-":
        raise Misused("--shard-tokens needs a file: give one with -o")
    if args.shard_exactly and args.shard_tokens is None:
        raise Misused("--shard-exactly needs --shard-tokens")
    if args.shard_exactly and sinks.TABLE[chosen].keeps_documents:
        raise Misused(f"--shard-exactly cuts documents, but {chosen} keeps them whole")
    if args.sidecar and not sinks.check_output(args.output):
        raise Misused("--sidecar needs a file: give one with -o")
    if args.sidecar and sinks.has_schema(chosen):
        raise Misused(f"--sidecar cannot be used with {chosen}, whose schema holds the same facts")
    return chosen


def job_options(args: argparse.Namespace, encoding: Encoding) -> dict[str, Any]:
    """The options of the command as `parts.settings` takes them. Raises Refused."""
    options = {name: getattr(args, name) for name in Settings.options() if hasattr(args, name)}
    return options | {  # those that the command line says in another way
        "add_special_tokens": args.add_special_tokens,
        "prepend": encoding_options.special_id(args.prepend, encoding),
        "append": encoding_options.special_id(args.append, encoding),
        "sidecar": args.sidecar is not False,
    }


def refuse_inputs(args: argparse.Namespace, family: sinks.Family, names: Sequence[str]) -> None:
    """Raise Refused if an output is also an input. names: of the inputs."""
    read = [*vocabulary_files(args.encoding), *names]
    outputs = [args.output]
    if sinks.check_output(args.output):
        outputs = family.kept_names(args.output, None)
        if args.resume:
            outputs.append(checkpoint_path(outputs[0]))
        if Reading.of(args).skip_bad_lines:
            outputs.append(skip_log_path(outputs[0]))
        if args.shard_tokens is not None:
            for shard in family.shards_there(args.output):
                outputs += family.kept_names(args.output, shard)
    overwriting.refuse_inputs(outputs, read)


def refuse_foreign(
    args: argparse.Namespace, family: sinks.Family, state: dict[str, Any] | None
) -> None:
    """Raise Refused if the run would replace files that another job made, unless --force is given.

    Shards that no job made are refused even then: how many the run will replace, and whether it
    removes the rest, is not known before its end. state: that of the files if the run has begun;
    the shards it has published are its own.
    """
    if not sinks.check_output(args.output):
        return
    complete = state["shard"] - (state["open"] is not None) if state else 0
    shards: list[int | None] = [] if complete else [None]
    if args.shard_tokens is not None:
        shards = [one for one in family.shards_there(args.output) if one >= complete]
    for shard in shards:
        if (found := sinks.find_foreign(family, args.output, shard)) is None:
            continue
        nobodys = shard is not None and sinks.find_foreign(
            family, args.output, shard, of_any_job=True
        )
        if nobodys:
            raise Refused(
                f"{shown(nobodys.path)} has the name of a shard of this output, and nothing shows "
                "that streamtok wrote it: move it away, or give another output"
            )
        if not args.force:
            raise overwriting.already_exists(*found)
    if args.force:
        return
    log = skip_log_path(family.names(args.output, None)[0])
    if Reading.of(args).skip_bad_lines and places.exists(log) and not is_skip_log(log):
        raise overwriting.already_exists(log)


def warn_of_no_template(args: argparse.Namespace, encoding: Encoding) -> str | None:
    """A warning if --add-special-tokens has added nothing, else None."""
    if not args.add_special_tokens or encoding._template != NO_TEMPLATE:
        return None
    return f"{encoding.name} puts no special tokens around a text: --prepend and --append do"


def warn_of_lost_ends(
    args: argparse.Namespace, family: sinks.Family, encoding: Encoding, documents: int
) -> str | None:
    """A warning if nothing in the output tells where documents end, else None."""
    is_marked = args.append is not None or args.prepend is not None
    if args.add_special_tokens:
        is_marked = encoding._template != NO_TEMPLATE
    if is_marked or family.format.keeps_documents or documents < 2:
        return None
    specials = encoding.special_tokens_set
    name = END if END in specials else min(specials, default=None)
    mark = f"--append {shlex.quote(name)} marks their ends, " if name else ""
    return (
        f"{family.chosen} does not record where the {documents:,} documents end: "
        f"{mark}--format jsonl keeps them separate"
    )


def open_sink(
    args: argparse.Namespace,
    family: sinks.Family,
    checkpoint: Checkpoint | None,
    state: dict[str, Any] | None,
    stack: contextlib.ExitStack,
    skip_log: SkipLog,
) -> Any:
    """The sink; `sinks.Files` if the output is a file. Raises Refused and OSError."""
    if not sinks.check_output(args.output):
        if args.resume or args.shard_tokens is not None:
            raise Refused(
                f"{args.output} is not a regular file: --resume and --shard-tokens need one"
            )
        output = sinks.open_output(args.output)
        stack.enter_context(output)
        try:
            return sinks.make_sink(output, family.chosen, family.about.max_id)
        except ValueError as error:
            raise Misused(str(error)) from None
    files = sinks.Files(
        args.output,
        family,
        shard_tokens=args.shard_tokens,
        is_exact=args.shard_exactly,
        is_resumable=args.resume,
        state=state["files"] if state else None,
    )

    def leave() -> None:  # does nothing after a complete run
        if checkpoint is not None and checkpoint.exists:
            files.close()
            skip_log.close()
        else:  # no process could continue the files
            files.discard()
            skip_log.discard()

    stack.callback(leave)
    return files
