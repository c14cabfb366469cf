"""`streamtok encode`: text to ids, from any feed to any file of ids."""

from __future__ import annotations

import argparse
import contextlib
import functools
import shlex
import sys
from typing import Any

from .._core.known import set_cache_limit
from ..encoding import Encoding
from ..parallel.texts import usable_cores
from ..pipeline import sinks
from ..pipeline.checkpoint import Checkpoint, checkpoint_path
from ..pipeline.documents import DocumentEncoder
from ..pipeline.run import Run, Totals
from ..pipeline.sources import Feed, Input, Listener
from . import input_options as inputs
from . import options, overwriting
from .report import Misused, Progress, Refused, is_terminal
from .stop_signals import Signals

END = "<|endoftext|>"
_DESCRIBED = ("parquet", "arrow")  # their schema says what the sidecar of others does
CACHE_BYTES = 16 << 20  # of each thread: what `encode` needs in all stays below 100 MB

_EXAMPLES = [
    "@ book.txt -o book.npy",
    "@ -e gpt2 --append '<|endoftext|>' *.txt -o train.u16",
    "@ --jsonl text docs.jsonl.zst --append '<|endoftext|>' --format megatron -o corpus",
    "@ --follow app.log --lines --shard-tokens 100M --resume -o app.bin",
    "tail -f app.log | @ --format text",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "encode",
        run,
        "turn text into ids; each document is a text of its own",
        _EXAMPLES,
    )
    inputs.add_source_options(parser)
    inputs.add_live_options(parser)
    options.add_text_options(parser)
    parser.add_argument(
        "--prepend",
        "--bos",
        metavar="TOKEN",
        help="the special token or id that documents begin with",
    )
    parser.add_argument(
        "--append", "--eos", metavar="TOKEN", help="the special token or id that documents end with"
    )
    options.add_output(parser)
    parser.add_argument(
        "--format",
        choices=sinks.FILE_FORMATS,
        help="default: what the suffix of the output says (.npy .txt .u16 .u32 .jsonl .ds .parquet "
        ".arrow), text for standard output; for .bin and without a suffix u16 if the vocabulary "
        "fits, else u32; text is one id a line",
    )
    parser.add_argument(
        "--sidecar",
        action=argparse.BooleanOptionalAction,
        help="OUTPUT.json with encoding, format, dtype and counts, which decode reads (default: "
        "yes; Parquet and Arrow have it in their schema)",
    )
    parser.add_argument(
        "--shard-tokens",
        type=options.count_of,
        metavar="N",
        help="several files OUTPUT_000000…; one ends with the document that brings it to N ids; "
        "those that an earlier run wrote behind the last one are removed",
    )
    parser.add_argument(
        "--shard-exactly", action="store_true", help="all but the last have N ids: texts are cut"
    )
    options.add_chunk_size(parser, 1 << 18)
    parser.add_argument(
        "--threads",
        type=options.positive_of,
        default=None,
        metavar="N",
        help="that encode; the output is the same (default: 2, if there are so many cores, but 1 "
        "for Parquet and Arrow, to save memory)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="keep a checkpoint in OUTPUT.checkpoint; if there is one, go on from it",
    )
    parser.add_argument(
        "--checkpoint-every",
        type=options.seconds_of,
        default=5.0,
        metavar="SECONDS",
        help="default: 5",
    )
    options.add_force(parser)
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="no progress, no summary, no warnings"
    )
    parser.add_argument("--json", action="store_true", help="the summary as one line of JSON")
    parser.add_argument(
        "--log-every",
        type=options.seconds_of,
        default=30.0,
        metavar="SECONDS",
        help="say how far it is where there is no terminal for a bar; 0: never (default: 30)",
    )


def run(args: argparse.Namespace) -> int:
    encoding = options.load_encoding(args)
    stream = options.open_stream(args, encoding)
    about = sinks.About(encoding.name, encoding.digest, encoding.max_token_value)
    chosen = _check_output(args, about)
    family = _family(args, chosen, about)
    if args.threads is None:
        # Each has 12 to 20 MB of its own, and pyarrow a lot.
        is_arrow = args.parquet is not None or chosen in ("parquet", "arrow")
        args.threads = 1 if is_arrow else min(2, usable_cores())
    set_cache_limit(CACHE_BYTES)
    encoder = inputs.open_encoder(args, encoding, stream)
    is_socket = args.listen is not None or args.connect is not None
    listener: Listener | None = None
    opened: list[Input] = []
    if is_socket:
        feed_inputs, listener = inputs.open_sockets(args)
    else:
        opened = [inputs.open_followed(args)] if args.follow else inputs.open_inputs(args)
        feed_inputs = iter(opened)
    with contextlib.ExitStack() as stack:
        stack.callback(encoder.release)
        if listener is not None:
            stack.callback(listener.close)
        _refuse_inputs(args, family)
        checkpoint = state = None
        if sinks.check_output(args.output):
            stack.callback(sinks.Locks(family.kept_names(args.output, None)).close)
        if args.resume:
            path = checkpoint_path(family.names(args.output, None)[0])
            checkpoint = Checkpoint(path, _settings(args, encoding, chosen, opened))
            state = checkpoint.load()
        _refuse_others(args, family, state["files"] if state else None)
        totals = Totals(**state["totals"]) if state else Totals()
        sink, files = _open_sink(args, family, checkpoint, state, stack)
        progress = stack.enter_context(Progress(args, [one.size for one in opened], totals))
        if state and state["done"]:
            assert checkpoint is not None
            assert files is not None
            files.finish()  # killed after the last checkpoint: the files are published now
            files.publish()
            checkpoint.remove()
        else:
            first, at = 0, None
            if state:
                encoder.setstate(state["encoder"])
                first, at = state["position"]["input"], state["position"]["at"]
                feed_inputs = iter(opened[first:])
                progress.skip(sum(one.size or 0 for one in opened[:first]))
            pipeline = Run(
                Feed(feed_inputs, first, at),
                encoder,
                sink,
                files=files,
                checkpoint=checkpoint,
                every=args.checkpoint_every,
                totals=totals,
            )
            _go(args, pipeline, progress, encoder)
            totals = pipeline.totals
    if not args.quiet:
        warning = _warning(args, family, encoding, totals.documents)
        progress.summary(totals, inputs.is_split(args), warning)
    return 0


def _go(
    args: argparse.Namespace, pipeline: Run, progress: Progress, encoder: DocumentEncoder
) -> None:
    # A followed file and --connections 0 have no other end than a signal. With --resume it is no
    # end either: the next process goes on.
    is_endless = args.follow or (args.listen is not None and not args.connections)
    ends = Signals.Paused if is_endless and not args.resume else ()
    try:
        pipeline.go(progress.advance, ends)
    except Signals.Paused:
        if args.resume:
            if pipeline.has_begun:
                pipeline.save()
            args.when_stopped = f"stopped; the same command goes on with {args.output}"
        raise
    except (UnicodeDecodeError, RuntimeError, ValueError) as error:
        raise inputs.refusal(error, pipeline.input_name, encoder, inputs.is_split(args)) from None


def _check_output(args: argparse.Namespace, about: sinks.About) -> str:
    """str: the format. Raises Refused for what does not go together."""
    try:
        chosen = sinks.choose_file_format(args.format, args.output, about.max_id)
    except ValueError as error:
        raise Refused(str(error)) from None
    if args.output == "-" and chosen in ("u16", "u32") and is_terminal(sys.stdout):
        raise Refused(f"{chosen} is not for a terminal: use -o FILE, a pipe or --format text")
    if args.resume and args.output == "-":
        raise Misused("--resume is for a file: give one with -o")
    if args.resume and (args.listen is not None or args.connect is not None):
        raise Misused("--resume is not for a socket: what it sent does not come again")
    if args.shard_tokens is not None and args.output == "-":
        raise Misused("--shard-tokens is for files: give a name with -o")
    if args.shard_exactly and args.shard_tokens is None:
        raise Misused("--shard-exactly needs --shard-tokens")
    if args.shard_exactly and sinks.Family(chosen, about).keeps_documents:
        raise Misused(f"--shard-exactly cuts documents, and {chosen} keeps them whole")
    if args.sidecar and not sinks.check_output(args.output):
        raise Misused("--sidecar is for files: give one with -o")
    if args.sidecar and chosen in _DESCRIBED:
        raise Misused(f"--sidecar is not for {chosen}, which says in its schema what it holds")
    return chosen


def _family(args: argparse.Namespace, chosen: str, about: sinks.About) -> sinks.Family:
    return sinks.Family(chosen, about, args.sidecar is not False and chosen not in _DESCRIBED)


def _refuse_inputs(args: argparse.Namespace, family: sinks.Family) -> None:
    """Raises Refused if what would be written is what is read."""
    read = [*overwriting.vocabulary_files(args.encoding)]
    if args.listen is None and args.connect is None:
        read += inputs.input_paths(args)
    outputs = [args.output]
    if sinks.check_output(args.output):
        outputs = family.kept_names(args.output, None)
        if args.resume:
            outputs.append(checkpoint_path(outputs[0]))
        if args.shard_tokens is not None:
            for shard in family.shards_there(args.output):
                outputs += family.kept_names(args.output, shard)
    overwriting.refuse_inputs(outputs, read)


def _refuse_others(
    args: argparse.Namespace, family: sinks.Family, state: dict[str, Any] | None
) -> None:
    """Raises Refused if what would be replaced is not an earlier output.

    state: of the files, if the run has begun: what it has published is its own.
    """
    if not sinks.check_output(args.output):
        return
    complete = state["shard"] - (state["open"] is not None) if state else 0
    shards: list[int | None] = [] if complete else [None]
    if args.shard_tokens is not None:
        shards = [one for one in family.shards_there(args.output) if one >= complete]
    for shard in shards:
        find_other = functools.partial(sinks.find_foreign, family, shard=shard)
        overwriting.refuse_others([args.output], find_other, args.force)


def _warning(
    args: argparse.Namespace, family: sinks.Family, encoding: Encoding, documents: int
) -> str | None:
    """str | None: that nothing in the output says where documents end."""
    is_marked = args.append is not None or args.prepend is not None
    if is_marked or family.keeps_documents or documents < 2:
        return None
    specials = encoding.special_tokens_set
    name = END if END in specials else min(specials, default=None)
    mark = f"--append {shlex.quote(name)} marks their ends, and " if name else ""
    return (
        f"{family.chosen} does not say where one of the {documents:,} documents ends: "
        f"{mark}--format jsonl keeps them apart"
    )


def _open_sink(
    args: argparse.Namespace,
    family: sinks.Family,
    checkpoint: Checkpoint | None,
    state: dict[str, Any] | None,
    stack: contextlib.ExitStack,
) -> tuple[Any, sinks.Files | None]:
    """(what takes the ids, the same if it is files)."""
    if not sinks.check_output(args.output):
        if args.resume or args.shard_tokens is not None:
            raise Refused(f"{args.output} is no file: --resume and --shard-tokens need one")
        output = stack.enter_context(sinks.open_output(args.output))
        try:
            return sinks.make_sink(output, family.chosen, family.about.max_id), None
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

    def leave() -> None:  # after a complete run there is nothing
        if checkpoint is not None and checkpoint.exists:
            files.close()
        else:  # nobody would go on with it
            files.discard()

    stack.callback(leave)
    return files, files


def _settings(
    args: argparse.Namespace, encoding: Encoding, chosen: str, opened: list[Input]
) -> dict[str, Any]:
    """dict: what the result depends on, under the names that the user knows."""
    names = (
        "allowed_special disallowed_special errors prepend append lines jsonl parquet "
        "skip_bad_lines skip_empty strip_bom no_unpack sidecar shard_tokens shard_exactly"
    )
    rows = {f"--{name.replace('_', '-')}": getattr(args, name) for name in names.split()}
    delimiter = args.delimiter
    return rows | {
        "--encoding": f"{encoding.name} ({encoding.digest[:16]})",
        "--format": chosen,
        "--max-pending": args.max_pending if args.jsonl is not None else None,  # skips longer lines
        "--delimiter": None if delimiter is None else repr(delimiter),
        "inputs": [one.fingerprint() for one in opened],
    }
