"""`streamtok encode`: text to ids, from any feed to any file of ids."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any

from .. import sinks
from .._core.known import set_cache_limit
from ..batch import usable_cores
from ..checkpoint import Checkpoint
from ..documents import DocumentEncoder
from ..encoding import Encoding
from ..pipeline import Run, Totals
from ..sources import Feed, Input, Listener
from . import inputs, options
from .report import Misused, Progress, Refused, is_terminal
from .signals import Signals

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
        ".arrow), text for standard output, else u16 if the vocabulary fits, else u32; text is one "
        "id a line",
    )
    parser.add_argument(
        "--sidecar",
        action=argparse.BooleanOptionalAction,
        help="for u16 and u32: OUTPUT.json with encoding, dtype, counts and SHA-256 "
        "(default: for .bin)",
    )
    parser.add_argument(
        "--shard-tokens",
        type=options.count_of,
        metavar="N",
        help="several files OUTPUT_000000…; one ends with the document that brings it to N ids",
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
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
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
        checkpoint = state = None
        if args.resume:
            checkpoint = Checkpoint(
                f"{args.output}.checkpoint", _settings(args, encoding, chosen, opened)
            )
            stack.callback(checkpoint.close)
            state = checkpoint.load()
        totals = Totals(**state["totals"]) if state else Totals()
        sink, files = _open_sink(args, chosen, about, state, stack)
        progress = stack.enter_context(Progress(args, [one.size for one in opened], totals))
        if state and state["done"]:
            assert checkpoint is not None
            checkpoint.remove()  # killed after the last checkpoint: the files are published now
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
        progress.summary(totals, inputs.is_split(args))
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
    if args.sidecar and (args.output == "-" or chosen not in ("u16", "u32")):
        raise Misused("--sidecar is for files of the formats u16 and u32")
    return chosen


def _open_sink(
    args: argparse.Namespace,
    chosen: str,
    about: sinks.About,
    state: dict[str, Any] | None,
    stack: contextlib.ExitStack,
) -> tuple[Any, sinks.Files | None]:
    """(what takes the ids, the same if it is files)."""
    if args.output == "-" or not sinks.check_output(args.output):
        if args.resume or args.shard_tokens is not None:
            raise Refused(f"{args.output} is no file: --resume and --shard-tokens need one")
        output = stack.enter_context(sinks.open_output(args.output))
        try:
            return sinks.make_sink(output, chosen, about.max_id), None
        except ValueError as error:
            raise Misused(str(error)) from None
    is_bin = args.output.lower().endswith(".bin") and chosen in ("u16", "u32")
    files = sinks.Files(
        args.output,
        sinks.Family(chosen, about, is_bin if args.sidecar is None else args.sidecar),
        shard_tokens=args.shard_tokens,
        is_exact=args.shard_exactly,
        is_resumable=args.resume,
        state=state["files"] if state else None,
    )
    # After a complete run nothing is left to discard.
    stack.callback(files.close if args.resume else files.discard)
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
