"""`streamtok encode`: encodes text from any source to ids in any format."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
from typing import Any

from .._core.encode import set_cache_limit
from ..encoding import Encoding
from ..parallel.threads import usable_cores
from ..parts.settings import Settings
from ..pipeline import sinks
from ..pipeline.checkpoint import Checkpoint, checkpoint_path
from ..pipeline.job_digest import POLICY, job_digest
from ..pipeline.run import Run
from ..pipeline.sources import Feed, Input, Reading
from . import encode_output as outputs
from . import encoding_options, input_options, open_inputs, options, parts_options
from .argument_types import parse_count, parse_positive, parse_seconds
from .messages import Misused
from .options import add_option
from .progress import Made, Progress
from .stop_signals import Signals

CACHE_BYTES = 16 << 20  # for each thread: the pre-token cache, smaller than the default

_EXAMPLES = [
    "@ book.txt -o book.npy",
    "@ -e gpt2 --append '<|endoftext|>' *.txt -o train.u16",
    "@ --jsonl text docs.jsonl.zst --append '<|endoftext|>' --format megatron -o corpus",
    "@ --follow app.log --lines --shard-tokens 100M --resume -o app.bin",
    "tail -f app.log | @ --format text",
    "@ --lines huge.txt --workers 8 --format npy -o folder",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "encode",
        run,
        "encode text to ids, each document independently",
        _EXAMPLES,
    )
    input_options.add_source_options(parser)
    input_options.add_live_options(parser)
    encoding_options.add_text_options(parser, special="refuse")
    ends = parser.add_argument_group("ends of documents")
    add_option(ends, "--prepend --bos TOKEN", "a special token or id to put before each document")
    add_option(ends, "--append --eos TOKEN", "a special token or id to put after each document")
    add_option(
        ends,
        "--add-special-tokens",
        "put around each document the special tokens that the vocabulary's file asks for, "
        "such as <s>",
    )
    output = parser.add_argument_group("output")
    options.add_output(output)
    add_option(
        output,
        "--format",
        f"default: by the suffix of the output ({' '.join(sinks.FILE_SUFFIXES)}); text for "
        "standard output; for .bin and no suffix u16 if the vocabulary fits, "
        "else u32; text is one id a line",
        choices=sinks.FILE_FORMATS,
    )
    add_option(
        output,
        "--sidecar",
        "write OUTPUT.json with encoding, format, dtype and counts, for decode (default: yes; "
        "Parquet holds this in its schema)",
        action=argparse.BooleanOptionalAction,
    )
    add_option(
        output,
        "--shard-tokens N",
        "write files OUTPUT_000000…; each ends with the document that brings it to N ids; "
        "with --force, files left from an earlier, longer run are removed",
        parse_count,
    )
    add_option(
        output, "--shard-exactly", "give each file but the last exactly N ids, and cut documents"
    )
    speed = parser.add_argument_group("speed; the ids are the same")
    options.add_chunk_size(speed, 1 << 19)
    add_option(
        speed,
        "--threads N",
        "threads that encode; the output is the same (default: 2 if there are 2 cores; 1 for "
        "Parquet, to save memory)",
        parse_positive,
    )
    parts_options.add_options(parser)
    recovery = parser.add_argument_group("going on after a crash")
    add_option(
        recovery,
        "--resume",
        "keep a checkpoint in OUTPUT.checkpoint, and continue from an existing one",
    )
    add_option(recovery, "--checkpoint-every SECONDS", "default: 5", parse_seconds, 5.0)
    options.add_force(output)
    messages = parser.add_argument_group("messages")
    add_option(messages, "-q --quiet", "do not print progress, summary or warnings")
    add_option(messages, "--json", "the summary as one line of JSON")
    add_option(
        messages,
        "--log-every SECONDS",
        "print the progress at this interval if there is no terminal; 0: never (default: 30)",
        parse_seconds,
        30.0,
    )


def run(args: argparse.Namespace) -> int:
    if args.add_special_tokens and (args.prepend is not None or args.append is not None):
        raise Misused("give --add-special-tokens, or --prepend and --append, not both")
    if args.workers is not None or args.ray is not None or args.task is not None:
        from . import encode_parts  # a tenth of the time that a command takes to start

        return encode_parts.run(args)
    encoding = encoding_options.load_encoding(args)
    chosen = outputs.check_format(args, encoding.max_token_value)
    options = outputs.job_options(args, encoding)
    settings = Settings.of(args.encoding, encoding, chosen, options)
    family = settings.family(encoding)
    if args.threads is None:
        # Each thread needs 12 to 20 MB, and pyarrow needs much memory.
        is_arrow = args.parquet is not None or sinks.has_schema(chosen)
        args.threads = 1 if is_arrow else min(2, usable_cores())
    set_cache_limit(CACHE_BYTES)
    encoder = settings.open_encoder(encoding, args.threads)
    has_file = sinks.check_output(args.output)
    skip_log = open_inputs.make_skip_log(
        args, family.names(args.output, None)[0] if has_file else None
    )
    names = open_inputs.input_paths(args)
    opened = open_inputs.open_inputs(args, names)
    with contextlib.ExitStack() as stack:
        stack.callback(encoder.release)
        depends_on, job = _depends_on(settings, encoding, opened)
        family = settings.family(encoding, job)
        outputs.refuse_inputs(args, family, names)
        checkpoint = state = None
        if has_file:
            stack.callback(sinks.Locks(family.kept_names(args.output, None)).close)
        if args.resume:
            path = checkpoint_path(family.names(args.output, None)[0])
            checkpoint = Checkpoint(path, depends_on)
            state = checkpoint.load()
        taking_up = checkpoint.taking_up if checkpoint and state else contextlib.nullcontext
        with taking_up():
            outputs.refuse_foreign(args, family, state["files"] if state else None)
        with taking_up():
            sink = outputs.open_sink(args, family, checkpoint, state, stack, skip_log)
            pipeline = Run(
                Feed(opened),
                encoder,
                sink,
                checkpoint=checkpoint,
                every=args.checkpoint_every,
                skip_log=skip_log,
            )
            if state:
                pipeline.take_up(state)
            totals = pipeline.totals
            sizes = [one.size for one in opened]
            progress = stack.enter_context(Progress(args, sizes, dataclasses.replace(totals)))
            if state:
                progress.note(
                    f"{args.output}: continuing after {totals.documents:,} documents, "
                    f"{totals.bytes:,} bytes, {totals.tokens:,} tokens"
                )
        args.continues = args.resume
        with taking_up(True):
            _go(args, pipeline, progress)
    if not args.quiet:
        warning = outputs.warn_of_no_template(args, encoding)
        warning = warning or outputs.warn_of_lost_ends(args, family, encoding, totals.documents)
        made = Made(encoding.name, chosen, family.dtype, args.output)
        progress.summary(totals, Reading.of(args).is_split, made, warning)
    return 0


def _go(args: argparse.Namespace, pipeline: Run, progress: Progress) -> None:
    # Only a signal ends a followed file. With --resume it is not an end either, because the next
    # process continues.
    ends = Signals.Paused if args.follow and not args.resume else ()
    try:
        pipeline.go(progress.advance, ends)
    except Signals.Paused:
        if args.resume:
            if pipeline.has_begun:
                pipeline.save()
            args.when_stopped = f"stopped; the same command continues {args.output}"
        raise
    except (UnicodeDecodeError, RuntimeError, ValueError) as error:
        raise open_inputs.explain(error, pipeline.place) from None


def _depends_on(
    settings: Settings, encoding: Encoding, opened: list[Input]
) -> tuple[dict[str, Any], str | None]:
    """What the ids already written depend on, by names that the user knows; the job's digest.

    A run with others cannot continue. POLICY may change: it is in the digest only.
    """
    row = settings.as_json()
    rows = {
        f"--{name.replace('_', '-')}": row[name]
        for name in row.keys() - {"digest", "part_size", "unpack"}
    }
    rows |= {
        "--encoding": f"{encoding.name} ({encoding.digest[:16]})",
        "--no-unpack": not settings.unpack,
        "inputs": [one.fingerprint() for one in opened],
    }
    policy = {f"--{name.replace('_', '-')}" for name in POLICY}
    return {name: rows[name] for name in rows.keys() - policy}, job_digest(rows)
