"""What the user sees on standard error: refusals, progress and summaries."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import TextIO


class Refused(Exception):
    """An expected failure: its text is the one line that the user sees."""


@contextlib.contextmanager
def progress(
    args: argparse.Namespace, sizes: list[int | None]
) -> Iterator[Callable[[int, int], None]]:
    """Give advance(bytes, all tokens), which moves a bar on a terminal and is silent elsewhere."""
    is_shared = args.output == "-" and is_terminal(sys.stdout)  # ids on the same screen
    if args.quiet or args.json or is_shared or not is_terminal(sys.stderr):
        yield lambda size, tokens: None
        return
    from tqdm import tqdm

    known = [size for size in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    with tqdm(total=total, unit="B", unit_scale=True, leave=False, file=sys.stderr) as bar:

        def advance(size: int, tokens: int) -> None:
            bar.set_postfix_str(f"{tokens:,} tokens", refresh=False)
            bar.update(size)

        yield advance


def report(
    args: argparse.Namespace, files: int, bytes_in: int, tokens: int, seconds: float
) -> None:
    if args.json:
        row = {"files": files, "bytes": bytes_in, "tokens": tokens, "seconds": round(seconds, 6)}
        row["bytes_per_token"] = round(bytes_in / tokens, 4) if tokens else 0.0
        say(json.dumps(row), prefix="")
        return
    ratio = f", {bytes_in / tokens:.2f} bytes per token" if tokens else ""
    speed = f" ({bytes_in / seconds / 1e6:.1f} MB/s)" if seconds else ""
    plural = "" if files == 1 else "s"
    say(
        f"{files} input{plural}, {bytes_in:,} bytes, {tokens:,} tokens{ratio}, "
        f"{seconds:.2f} s{speed}"
    )


def is_terminal(file: TextIO | None) -> bool:
    return file is not None and file.isatty()  # None: the descriptor was closed


def shown(name: str) -> str:
    # One line, printable, whatever bytes the file name has.
    return name if name.isprintable() else ascii(name)


def input_name(name: str) -> str:
    return "standard input" if name == "-" else shown(name)


def describe(error: OSError) -> str:
    what = error.strerror or str(error)
    if error.filename is None:
        return what
    return f"{shown(os.fsdecode(error.filename))}: {what}"


def say(text: str, prefix: str = "streamtok: ") -> None:
    with contextlib.suppress(OSError, AttributeError):  # nobody may be listening
        sys.stderr.write(f"{prefix}{text}\n")
        sys.stderr.flush()


def complain(text: str) -> None:
    say(" ".join(text.split("\n")), prefix="streamtok: error: ")


def forget_stdout() -> None:
    # Else the interpreter complains at exit that it cannot flush what nobody reads.
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
