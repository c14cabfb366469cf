"""`streamtok encode`: encodes text from any source to ids in any format."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
from typing import Any

from .._core.encode import set_cache_limit
from ..engines.template import NO_TEMPLATE
from ..jobs.job import CHUNK_SIZE, EncodeJob
from ..jobs.record import Record, record_path
from ..jobs.rows import Row
from ..jobs.run import Run
from ..jobs.sinks.locks import Locks
from ..jobs.sources.records import BadRecord
from ..jobs.span_encoder import Span, SpanEncoder
from ..jobs.spans import CACHE_BYTES, begin_encoder, find_cuts, spans_after
from ..threads import usable_cores
from . import encode_output as outputs
from . import encoding_options, open_inputs, options
from .encode_output import Output
from .messages import Misused
from .options import add_option
from .progress import Made, Progress
from .stop_signals import Signals

_EXAMPLES = [
    "@ book.txt -o book.npy",
    "@ -e gpt2 --append '<|endoftext|>' *.txt -o train.u16",
    "@ --jsonl text docs.jsonl.zst --append '<|endoftext|>' --format megatron -o corpus",
    "@ --follow app.log --lines --shard-tokens 100M --resume -o app.bin",
    "tail -f app.log | @ --format text",
    "@ --lines huge.txt --workers 8 -o huge.npy",
]


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "encode",
        run,
        "encode text to ids, each document independently",
        _EXAMPLES,
    )
    options.add_files(parser)
    encoding_options.add_text_options(parser, special="refuse")
    parser.set_defaults(encoding=None)  # with --chat, the default is the model's encoding
    groups = options.add_options(parser, EncodeJob)
    options.add_glob(groups["inputs and documents (default: each input is one document)"])
    output = groups["output"]
    options.add_output(output)
    options.add_force(output)
    options.add_chunk_size(groups["speed; the ids are the same"], CHUNK_SIZE)
    messages = parser.add_argument_group("messages")
    add_option(messages, "-q --quiet", "do not print progress, summary or warnings")
    add_option(messages, "--json", "the summary as one line of JSON")


def run(args: argparse.Namespace) -> int:
    args.encoding = args.encoding or args.chat or encoding_options.DEFAULT_ENCODING
    job = options.read_options(args, EncodeJob)
    if job.is_in_parts:
        from . import encode_parts  # importing it takes a tenth of the start-up time

        return encode_parts.run(args, job)
    encoding = encoding_options.load_encoding(args.encoding)
    job = outputs.resolve(job, encoding, args.output)
    output = Output(args.output, args.force, job, encoding)
    output.check_options()
    threads = job.threads
    if threads is None:
        # Each thread needs 12 to 20 MB, and pyarrow already needs a lot of memory.
        is_arrow = job.parquet is not None or output.family.chosen == "parquet"
        threads = 1 if is_arrow else min(2, usable_cores())
    set_cache_limit(CACHE_BYTES)
    notes = open_inputs.Notes(args.quiet, args.json)
    names = open_inputs.input_paths(args.files, args.glob, job, notes)
    skipped: list[BadRecord] = []
    how = job, args.signals.heard, job.chunk_size, skipped.append
    opened = [open_inputs.open_input(name, *how) for name in names]
    with contextlib.ExitStack() as stack:
        output.refuse_inputs(names)
        sizes = [one.size for one in opened]
        encoder = None
        if job.workers is not None:
            if None in sizes:
                raise Misused("--workers needs files as inputs")
            from ..jobs.worker_pool import InProcesses

            find = find_cuts(job, encoding)
            run_after = InProcesses(
                functools.partial(begin_encoder, job, names, sizes),
                lambda row: spans_after(row, job, names, sizes, find),
                job.workers,
                args.signals.heard,
            ).run
        else:
            # A followed file ends only at a signal. With --resume it does not end even then,
            # because the next process continues it.
            encoder = SpanEncoder(
                job,
                encoding,
                output.family,
                lambda number, span: opened[number],
                sizes,
                skipped,
                num_threads=threads,
                marks_every=job.checkpoint_every if job.resume else None,
                ends_at=Signals.Paused if job.follow and not job.resume else (),
                pauses_at=Signals.Paused,
            )
            run_after = functools.partial(encoder.run_after, span=Span(0, len(opened)))
        record = None
        if output.is_file:
            stack.callback(Locks(output.family.kept_names(args.output, None)).close)
        if job.resume:
            inputs = [one.fingerprint() for one in opened]
            record = Record(record_path(output.first), job, inputs)
            record.load()
            stack.callback(record.close)
        output.refuse_existing(record)
        out = output.open(record, stack)
        pipeline = Run(run_after, out, record, job.checkpoint_every)
        pipeline.begin()
        totals = pipeline.totals
        progress = stack.enter_context(Progress(args, sizes, dataclasses.replace(totals)))
        if record is not None and record.last != Row():
            notes.say(
                f"{args.output}: continuing after {totals.documents:,} documents, "
                f"{totals.bytes:,} bytes, {totals.tokens:,} tokens"
            )
        args.continues = job.resume
        try:
            pipeline.go(progress.advance)
        except Signals.Paused:
            if job.resume:
                args.when_stopped = f"stopped; the same command continues {args.output}"
            raise
        except (UnicodeDecodeError, RuntimeError, ValueError) as error:
            raise open_inputs.explain(error, encoder.place if encoder else "") from None
    if not args.quiet:
        warning = output.warn_of_lost_ends(totals.documents)
        if args.add_special_tokens and encoding.definition.template == NO_TEMPLATE:
            warning = (
                f"{encoding.name} puts no special tokens around a text: --prepend and --append do"
            )
        made = Made(encoding.name, output.family.chosen, output.family.dtype, args.output)
        progress.summary(totals, job.is_split, made, warning)
    return 0
