"""`streamtok train`: a vocabulary from files."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import MemoryLimitExceeded, StreamtokError
from ..vocabulary import save_tiktoken
from . import options, overwriting

if TYPE_CHECKING:
    from ..trainer import Trainer

# Those of `trainer` and `merging`, which other commands need not import.
PATTERN_NAMES = ("gpt2", "cl100k", "o200k", "llama3", "nanochat")
TIES = ("raw", "hf", "first")

_STDIN = 0
_BLOCK = 1 << 23  # bytes between two looks at the clock
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}

Advance = Callable[[int, int], None]


def add_parser(commands: Any) -> None:
    """Add the command to the sub-parsers of `streamtok`."""
    parser = commands.add_parser(
        "train",
        help="make a vocabulary from files",
        description="Make a vocabulary from files; each file is a text of its own.",
        allow_abbrev=False,
    )
    parser.set_defaults(command=run)
    parser.add_argument("files", nargs="*", metavar="FILE", help="- or none: standard input")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="a .tiktoken file")
    parser.add_argument(
        "--vocab-size",
        type=_number,
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
        help="keep what was counted there, also on Ctrl-C: the same command then goes on from it",
    )
    options.add_force(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")


def run(args: argparse.Namespace) -> int:
    """int: the exit code. Raises StreamtokError and OSError with one line for the user."""
    from ..merging import check_merging

    started = time.perf_counter()
    specials: list[str] = args.special
    try:
        if "" in specials or len(set(specials)) < len(specials):
            raise ValueError("special tokens are different texts of at least one character")
        check_merging(args.vocab_size - len(specials), args.min_frequency, args.tie)
    except ValueError as error:
        raise StreamtokError(str(error)) from None
    _check_output(args.output)
    also = [] if args.save_counts is None else [args.save_counts]
    read = args.files or ["-"]
    overwriting.check_vocabulary([args.output], read, "tiktoken", args.force, also)
    trainer = _open_trainer(args)
    names = args.files or ["-"]
    try:
        _count(args, trainer, names)
    except MemoryLimitExceeded as error:
        _keep(args, trainer)
        raise StreamtokError(f"{error} (--memory-limit, --prune, --save-counts)") from None
    except BaseException:  # whatever stops us: what was counted can go on
        _keep(args, trainer)
        raise
    _keep(args, trainer)
    with _bar(args, "merges", None, "") as advance:
        encoding = trainer.train(
            args.vocab_size,
            special_tokens=specials,
            min_frequency=args.min_frequency,
            tie=args.tie,
            progress=advance,
        )
    save_tiktoken(encoding._vocabulary, args.output)
    if not args.quiet:
        _report(args, trainer, encoding.n_vocab, time.perf_counter() - started)
        for text, token in encoding._special_tokens.items():
            _say(f"special token {text!r} has id {token}; a .tiktoken file has no place for it")
    return 0


# Counting


def _open_trainer(args: argparse.Namespace) -> Trainer:
    from ..trainer import PATTERNS, Trainer

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
    if (trainer.pattern.source, trainer.errors) != (wanted, args.errors):
        raise StreamtokError(
            f"{args.save_counts} was counted with another --pattern, or other --errors"
        )
    return trainer


def _count(args: argparse.Namespace, trainer: Trainer, names: list[str]) -> None:
    files = trainer.notes.setdefault("files", {})
    for key in [key for key, entry in files.items() if not entry["done"]]:  # one at the most
        begun = [name for name in names if os.path.abspath(name) == key]
        if not begun:
            raise StreamtokError(f"{key} is counted in part: name it, too")
        names = begun + [name for name in names if name not in begun]  # its text is still open
    sizes = [_file_size(name) for name in names]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    with _bar(args, "counting", total, "B") as advance:
        seen = 0
        for name, size in zip(names, sizes, strict=True):
            key = os.path.abspath(name)
            start = 0
            if size is None and args.save_counts is not None:
                raise StreamtokError(f"--save-counts goes with regular files only, not {name}")
            if size is not None and args.save_counts is not None:
                start = _place_in(files, key, size)
            if start < 0:
                seen += size or 0
                continue
            entry = files[key] = {"size": size, "begin": trainer.bytes_in - start, "done": False}
            seen += start
            for n in _blocks(trainer, name, start):
                seen += n
                advance(seen, total or 0)
            entry["done"] = True


def _place_in(files: dict[str, Any], key: str, size: int) -> int:
    """How much of a file was counted before: bytes, or -1 for all of it."""
    entry = files.get(key)
    if entry is None:
        return 0
    if entry["size"] != size:
        raise StreamtokError(
            f"{key} had {entry['size']} bytes when it was counted, and has {size} now"
        )
    return -1 if entry["done"] else int(entry["bytes"])


def _blocks(trainer: Trainer, name: str, start: int) -> Iterator[int]:
    """Count a file from `start` on; bytes after each block."""
    buffer = memoryview(bytearray(_BLOCK))
    with open(_STDIN if name == "-" else name, "rb", buffering=0, closefd=name != "-") as file:
        if start:
            file.seek(start)
        try:
            while n := file.readinto(buffer):
                trainer.update(buffer[:n])
                yield n
            trainer.end_document()
        except UnicodeDecodeError as error:
            raise StreamtokError(
                f"{'standard input' if name == '-' else name}: {error.reason} at byte "
                f"{error.start} of all input; --errors replace or --errors surrogateescape goes on"
            ) from None


def _keep(args: argparse.Namespace, trainer: Trainer) -> None:
    if args.save_counts is None:
        return
    for entry in trainer.notes.get("files", {}).values():
        if not entry["done"]:
            entry["bytes"] = trainer.bytes_in - entry["begin"]
    trainer.save_counts(args.save_counts)
    if not args.quiet:
        _say(f"{trainer.bytes_in:,} bytes are counted in {args.save_counts}")


def _file_size(name: str) -> int | None:
    if name == "-":
        return None
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not os.path.isfile(name):  # a FIFO can be opened only once
        os.stat(name)
        return None
    with open(name, "rb") as file:
        return os.fstat(file.fileno()).st_size


def _check_output(name: str) -> None:
    """Find out now, not after hours, that nothing can be written there."""
    folder = os.path.dirname(os.path.abspath(name))
    if os.path.isdir(name):
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
