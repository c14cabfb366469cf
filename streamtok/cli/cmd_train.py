"""`streamtok train`: a vocabulary from files."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import MemoryLimitExceeded, StreamtokError
from ..vocabulary.ranks_file import save_tiktoken
from . import options, overwriting
from .cmd_convert import NAMES as FORMAT_NAMES
from .counted_files import CountedFiles, blocks_of, open_file
from .report import shown

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..training.trainer import Trainer

# Those of `trainer` and `merging`, which other commands need not import.
PATTERN_NAMES = ("gpt2", "cl100k", "o200k", "llama3", "nanochat")
TIES = ("raw", "hf", "first")

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}

Advance = Callable[[int, int], None]


def add_parser(commands: Any) -> None:
    """Add the command to the sub-parsers of `streamtok`."""
    parser = commands.add_parser(
        "train",
        help="make a vocabulary from files",
        description="Make a vocabulary from files; each file is a text of its own. One that is "
        "named twice is counted twice.",
        allow_abbrev=False,
    )
    parser.set_defaults(command=run)
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="- or none: standard input; gzip, zstd, xz and bzip2 are unpacked",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="a vocabulary file, such as x.tiktoken or tokenizer.json; the name says the format",
    )
    parser.add_argument(
        "--to", choices=FORMAT_NAMES, help="the format (default: what the name of the output says)"
    )
    parser.add_argument(
        "--vocab-size",
        type=options.count_of,
        required=True,
        metavar="N",
        help="of bytes, merges and special tokens together",
    )
    parser.add_argument(
        "--pattern",
        default="cl100k",
        metavar="NAME|REGEX",
        help=f"the split pattern: {', '.join(PATTERN_NAMES)} or a regular expression "
        "(default: cl100k)",
    )
    parser.add_argument(
        "--special",
        action="append",
        default=[],
        metavar="TEXT",
        help="a special token that gets an id behind the merges; may be given several times",
    )
    parser.add_argument(
        "--tie",
        choices=TIES,
        default="raw",
        help="which of equally frequent pairs comes first: as in rustbpe (raw), Hugging Face's "
        "tokenizers (hf) or minbpe (first)",
    )
    parser.add_argument("--min-frequency", type=_number, default=1, metavar="N")
    parser.add_argument("--threads", type=_number, default=None, metavar="N")
    parser.add_argument(
        "--errors", choices=("strict", "replace", "surrogateescape"), default="strict"
    )
    parser.add_argument(
        "--memory-limit", type=_size, metavar="SIZE", help="of the counts, such as 4GiB"
    )
    parser.add_argument(
        "--prune",
        action="store_true",
        help="at the memory limit, forget pieces seen once (inexact; how many is reported)",
    )
    parser.add_argument(
        "--save-counts",
        metavar="FILE",
        help="keep what was counted there, also on Ctrl-C: the same command then goes on from it; "
        "all files that are counted there must be named",
    )
    options.add_force(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")


def run(args: argparse.Namespace) -> int:
    """int: the exit code. Raises StreamtokError and OSError with one line for the user."""
    from ..training.merging import check_merging, check_specials

    started = time.perf_counter()
    specials: list[str] = args.special
    try:
        check_specials(specials)
        check_merging(args.vocab_size - len(specials), args.min_frequency, args.tie)
    except ValueError as error:
        raise StreamtokError(str(error)) from None
    format = _format_of(args)
    _check_output(args.output, format)
    also = [] if args.save_counts is None else [args.save_counts]
    overwriting.check_vocabulary([args.output], args.files or ["-"], format, args.force, also)
    trainer = _open_trainer(args)
    _check_format(trainer, specials, format)
    files = None if args.save_counts is None else CountedFiles(trainer, args.save_counts)
    names = args.files or ["-"]
    try:
        _count(args, trainer, files, names)
    except MemoryLimitExceeded as error:
        _keep(args, trainer, files)
        raise StreamtokError(f"{error} (--memory-limit, --prune, --save-counts)") from None
    except BaseException:  # whatever stops us: what was counted can go on
        _keep(args, trainer, files)
        raise
    _keep(args, trainer, files)
    with _bar(args, "merges", None, "") as advance:
        encoding = trainer.train(
            args.vocab_size,
            special_tokens=specials,
            min_frequency=args.min_frequency,
            tie=args.tie,
            progress=advance,
        )
    _save(encoding, args.output, format)
    if not args.quiet:
        _report(args, trainer, encoding.n_vocab, time.perf_counter() - started)
        note = "; a .tiktoken file has no place for it" if format == "tiktoken" else ""
        for text, token in encoding._special_tokens.items():
            _say(f"special token {text!r} has id {token}{note}")
    return 0


# The output


def _format_of(args: argparse.Namespace) -> str:
    """The format of the output; a name without a suffix is that of a .tiktoken file."""
    from ..formats.conversion import format_of

    if args.to is not None:
        return str(args.to)
    if not os.path.splitext(args.output)[1]:
        return "tiktoken"
    try:
        return format_of(args.output)
    except ValueError as error:
        raise StreamtokError(f"{error}: use --to {'|'.join(FORMAT_NAMES)}") from None


def _check_format(trainer: Trainer, specials: list[str], format: str) -> None:
    """Find out now, not after hours, that the format cannot hold what will be trained."""
    if format == "tiktoken":
        return
    from ..training.trainer import Trainer

    smallest = Trainer(trainer.pattern).train(256 + len(specials), special_tokens=specials)
    with tempfile.TemporaryDirectory() as folder:
        _save(smallest, os.path.join(folder, "vocabulary"), format)


def _save(encoding: Encoding, path: str, format: str) -> None:
    if format == "tiktoken":
        save_tiktoken(encoding._vocabulary, path)
        return
    from ..formats.conversion import convert

    convert(encoding, path, format)


# Counting


def _open_trainer(args: argparse.Namespace) -> Trainer:
    from ..training.trainer import PATTERNS, Trainer

    settings = {
        "num_threads": args.threads,
        "memory_limit": args.memory_limit,
        "prune_singletons": args.prune,
    }
    if args.save_counts is None:
        return Trainer(args.pattern, errors=args.errors, **settings)
    if args.errors == "replace" or "-" in (args.files or ["-"]):
        raise StreamtokError(
            "--save-counts needs to know how far in which file it came: it goes neither with "
            "standard input nor with --errors replace"
        )
    if not os.path.exists(args.save_counts):
        return Trainer(args.pattern, errors=args.errors, **settings)
    trainer = Trainer.load_counts(args.save_counts, **settings)
    wanted = PATTERNS.get(args.pattern, args.pattern)
    if trainer.pattern.is_composed or (trainer.pattern.source, trainer.errors) != (
        wanted,
        args.errors,
    ):
        raise StreamtokError(
            f"{args.save_counts} was counted with another --pattern, or other --errors"
        )
    return trainer


def _count(
    args: argparse.Namespace, trainer: Trainer, files: CountedFiles | None, names: list[str]
) -> None:
    pairs = [(name, {}) for name in names] if files is None else files.in_order(names)
    sources = [open_file(name) for name, _ in pairs]  # all, before anything is counted
    sizes = [source.size for source in sources]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    with _bar(args, "counting", total, "B") as advance:
        seen = 0
        for source, (name, entry) in zip(sources, pairs, strict=True):
            if files is not None and source.size is None:
                raise StreamtokError(f"--save-counts needs regular files, which {name} is not")
            begin = trainer.bytes_in - entry.get("at", 0)
            blocks = blocks_of(source) if files is None else files.blocks(source, entry)
            try:
                for block in blocks:
                    trainer.update(block)
                    advance(seen + source.read, total or 0)
                trainer.end_document()
            except UnicodeDecodeError as error:
                raise StreamtokError(
                    f"{source.name}: {error.reason} at byte {error.start - begin}; "
                    "--errors replace or --errors surrogateescape goes on"
                ) from None
            seen += source.size or source.read
            advance(seen, total or 0)


def _keep(args: argparse.Namespace, trainer: Trainer, files: CountedFiles | None) -> None:
    if files is None:
        return
    files.note()
    trainer.save_counts(args.save_counts)
    if not args.quiet:
        _say(f"{trainer.bytes_in:,} bytes are counted in {shown(args.save_counts)}")


def _check_output(name: str, format: str) -> None:
    """Find out now, not after hours, that nothing can be written there."""
    folder = os.path.dirname(os.path.abspath(name))
    if os.path.isdir(name) and format != "gpt2":  # a pair of files in a folder
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


# What the user sees


@contextlib.contextmanager
def _bar(args: argparse.Namespace, what: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Give advance(done, all), which moves a bar on a terminal and is silent elsewhere."""
    if args.quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, of: None
        return
    from tqdm import tqdm

    with tqdm(
        total=total, desc=what, unit=unit, unit_scale=True, leave=False, file=sys.stderr
    ) as bar:

        def advance(done: int, of: int) -> None:
            bar.total = of or None
            bar.update(done - bar.n)

        yield advance


def _report(args: argparse.Namespace, trainer: Trainer, n_vocab: int, seconds: float) -> None:
    _say(
        f"{trainer.bytes_in:,} bytes, {trainer.n_pieces:,} different pieces, {n_vocab:,} tokens in "
        f"{args.output}, {seconds:.2f} s"
    )
    if n_vocab < args.vocab_size:
        _say(f"fewer than the {args.vocab_size:,} wanted: no pair is left")
    if trainer.pruned_pieces:
        _say(
            f"not exact: {trainer.pruned_pieces:,} pieces with {trainer.pruned_bytes:,} bytes were "
            "forgotten for lack of memory, each seen once until then"
        )


def _say(text: str) -> None:
    with contextlib.suppress(OSError, AttributeError):  # nobody may be listening
        sys.stderr.write(f"streamtok: {text}\n")
        sys.stderr.flush()


# Arguments


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*(?:([kmg])(?:i?b)?|b)?", text.strip().lower())
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 65536, 64KiB or 1GiB")
    return int(found[1]) << _UNITS[found[2] or ""]
