"""`streamtok train`: trains a vocabulary on files."""

from __future__ import annotations

import argparse
import errno
import os
import tempfile
import time
from typing import TYPE_CHECKING, Any

from ..errors import StreamtokError
from ..files import write_whole
from ..jobs.argument_types import parse_count, parse_positive, parse_positive_size
from ..jobs.input_counts import BLOCK, count_inputs
from ..jobs.rows import Totals
from ..jobs.sources.json_lines import MAX_LINE
from ..jobs.sources.reading import Reading
from ..patterns.named import PATTERNS
from ..training.merging import TIES, check_merging, check_specials
from ..training.trainer import Trainer
from ..vocabulary.ranks_file import dumps_tiktoken
from . import open_inputs, options, vocabulary_output
from .messages import Misused, say, shown
from .options import add_option
from .progress import show_bar

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..training.merging import Progress

PATTERN_NAMES = ("gpt2", "cl100k", "o200k", "llama3", "nanochat", "bert")


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "train",
        run,
        "train a vocabulary on files",
        [
            "@ *.txt --vocab-size 32k -o my.tiktoken",
            "@ --jsonl text data/*.jsonl.zst --vocab-size 32k -o tokenizer.json",
            "@ *.txt.gz --vocab-size 32k --special-token '<|end|>' --tie hf -o tokenizer.json",
            "@ *.txt --model wordpiece --vocab-size 30k -o tokenizer.json",
            "@ *.txt --vocab-size 100k --save-counts c.counts -o my.tiktoken",
        ],
    )
    options.add_files(parser)
    options.add_glob(next(iter(options.add_options(parser, Reading).values())))
    output = parser.add_argument_group("output")
    merges = parser.add_argument_group("the vocabulary")
    counting = parser.add_argument_group("counting")
    add_option(
        output,
        "-o --output FILE",
        "a vocabulary file, such as x.tiktoken or tokenizer.json",
        required=True,
    )
    vocabulary_output.add_format(output)
    add_option(
        merges,
        "--vocab-size N",
        "bytes, merges and special tokens together",
        parse_count,
        required=True,
    )
    add_option(
        merges,
        "--model",
        "merges of bytes (bpe), or pieces of words (wordpiece), as Hugging Face's tokenizers "
        "trains them (default: bpe)",
        default="bpe",
        choices=("bpe", "wordpiece"),
    )
    add_option(
        merges,
        "--pattern NAME|REGEX",
        f"the pre-tokenization pattern: {', '.join(PATTERN_NAMES)} or a regular expression "
        "(default: cl100k; for wordpiece: bert)",
    )
    add_option(
        merges,
        "--special-token TEXT",
        "a special token, whose id follows those of the merges; may be given several times "
        "(for wordpiece the ids come first; default: [PAD], [UNK], [CLS], [SEP] and [MASK])",
        default=[],
        action="append",
    )
    add_option(
        merges,
        "--tie",
        "which of equally frequent pairs to merge first: as rustbpe (raw), Hugging Face's "
        "tokenizers (hf) or minbpe (first) does (default: raw)",
        choices=TIES,
    )
    add_option(
        merges, "--min-frequency N", "do not merge rarer pairs (default: 1)", parse_positive, 1
    )
    add_option(
        merges,
        "--limit-alphabet N",
        "for wordpiece: only the N most frequent characters are pieces (default: all, which must "
        "fit into --vocab-size)",
        parse_positive,
    )
    add_option(counting, "--threads N", "threads that count (default: all cores)", parse_positive)
    options.add_errors(counting)
    add_option(
        counting,
        "--max-pending SIZE",
        f"largest size of a line of --jsonl (default: {MAX_LINE >> 20}MiB)",
        parse_positive_size,
        MAX_LINE,
    )
    add_option(
        counting,
        "--save-counts FILE",
        "save the counts to FILE: Trainer.load_counts reads them, to train again or to merge the "
        "counts of several machines",
    )
    options.add_force(output)
    add_option(parser, "-q --quiet", "do not print progress or a summary")


def run(args: argparse.Namespace) -> int:
    started = time.perf_counter()
    if args.model == "wordpiece" and args.tie is not None:
        raise Misused("--tie cannot be used with --model wordpiece")
    if args.model == "bpe" and args.limit_alphabet is not None:
        raise Misused("--limit-alphabet needs --model wordpiece")
    args.pattern = args.pattern or ("cl100k" if args.model == "bpe" else "bert")
    try:  # fail now, not after hours of counting
        if args.model == "wordpiece":
            _train(args, Trainer("bert"), args.vocab_size, None)
        else:
            check_specials(args.special_token)
            n_tokens = args.vocab_size - len(args.special_token)
            check_merging(n_tokens, args.min_frequency, args.tie or "raw")
    except ValueError as error:
        raise StreamtokError(str(error)) from None
    if args.to is None and not os.path.splitext(args.output)[1]:
        format = "tiktoken"  # the default for a name without a suffix
    else:
        format = vocabulary_output.choose_format(args.output, args.to)
    _check_folder(args.output)
    outputs = vocabulary_output.files_of(args.output, format)
    if args.save_counts is not None:
        outputs.append(args.save_counts)
    reading = options.read_options(args, Reading)
    notes = open_inputs.Notes(args.quiet)
    names = open_inputs.input_paths(args.files, args.glob, reading, notes)
    vocabulary_output.check_vocabulary(outputs, names, args.force)
    trainer = Trainer(args.pattern, errors=args.errors, num_threads=args.threads)
    _check_format(args, trainer, format)
    totals = Totals()
    inputs = [
        open_inputs.open_input(name, reading, args.signals.heard, BLOCK, totals.skip)
        for name in names
    ]
    with show_bar(args.quiet, "counting", None, "B") as advance:
        totals.documents = count_inputs(trainer, inputs, reading.is_split, advance)
    totals.check_skipped()
    if totals.skipped and not args.quiet:
        say(f"{totals.skipped:,} skipped ({totals.reasons})")
    if args.save_counts is not None:
        trainer.save_counts(args.save_counts)
    with show_bar(args.quiet, "merges", None, "") as advance:
        encoding = _train(args, trainer, args.vocab_size, advance)
    _save(encoding, args.output, format)
    if not args.quiet:
        _report(args, trainer, encoding, format, time.perf_counter() - started)
    return 0


def _train(
    args: argparse.Namespace, trainer: Trainer, vocab_size: int, progress: Progress | None
) -> Encoding:
    settings: dict[str, Any] = {"min_frequency": args.min_frequency, "progress": progress}
    if args.model == "wordpiece":
        if args.special_token:
            settings["special_tokens"] = args.special_token
        return trainer.train_wordpiece(vocab_size, limit_alphabet=args.limit_alphabet, **settings)
    return trainer.train(
        vocab_size, special_tokens=args.special_token, tie=args.tie or "raw", **settings
    )


def _report(
    args: argparse.Namespace, trainer: Trainer, encoding: Encoding, format: str, seconds: float
) -> None:
    """Say what was counted and trained, and how to use the output in this format."""
    say(
        f"{trainer.bytes_in:,} bytes, {trainer.n_pieces:,} distinct pre-tokens, "
        f"{encoding.n_vocab:,} tokens in {shown(args.output)}, {seconds:.2f} s"
    )
    if encoding.n_vocab < args.vocab_size:
        say(f"fewer than the requested {args.vocab_size:,} tokens: no pair is left to merge")
    is_bare = format == "tiktoken"  # holds tokens and their ids only
    note = "; a .tiktoken file cannot hold it" if is_bare else ""
    for text, token in encoding.definition.specials.special.items():
        say(f"special token {text!r} has id {token}{note}")
    if not is_bare:
        return
    if args.pattern in PATTERNS:
        how = f"other commands take it as -e {shown(args.output)}@{args.pattern}"
    else:
        name = repr(args.output)
        how = f'streamtok.load({name}, pattern=...) takes it, and "tokenizer.json" as -o holds it'
    say(f"a .tiktoken file has no pattern: {how}")


def _check_format(args: argparse.Namespace, trainer: Trainer, format: str) -> None:
    """Raise now, not after hours, if the format cannot hold the vocabulary to be trained."""
    if format == "tiktoken" and args.model == "bpe":
        return
    smallest = _train(args, Trainer(trainer.pattern), 256 + len(args.special_token), None)
    with tempfile.TemporaryDirectory() as folder:
        _save(smallest, os.path.join(folder, "vocabulary"), format)


def _save(encoding: Encoding, path: str, format: str) -> None:
    if format == "tiktoken" and encoding.definition.vocabulary.model is None:
        write_whole(path, dumps_tiktoken(encoding.definition.vocabulary))
        return
    from ..formats.conversion import save

    save(encoding, path, format)


def _check_folder(name: str) -> None:
    """Raise now, not after hours, if the output cannot be written."""
    folder = os.path.dirname(os.path.abspath(name))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
