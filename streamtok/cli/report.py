"""What the user sees on standard error: refusals, progress and summaries."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from typing import Any, TextIO

from ..pipeline.run import Totals


class Refused(Exception):
    """An expected failure: its text is the one line that the user sees."""


class Misused(Refused):
    """Options or arguments that do not go together: wrong usage, as a wrong value is."""


class Progress:
    """How far a run is: a bar on a terminal, else a line now and then; and the summary.

    Speeds are of this process; totals are of the run, of which others may have done a part.
    """

    def __init__(self, args: argparse.Namespace, sizes: list[int | None], before: Totals):
        """sizes: bytes of the inputs on the disk; None for those whose size nobody knows."""
        self._is_json = args.json
        is_shared = args.output == "-" and is_terminal(sys.stdout)  # ids on the same screen
        is_silent = args.quiet or is_shared
        self._has_bar = not (is_silent or args.json) and is_terminal(sys.stderr)
        self._every = 0.0 if is_silent or self._has_bar else args.log_every
        known = [size for size in sizes if size is not None]
        self._total = sum(known) if sizes and len(known) == len(sizes) else None
        self._before = before
        self._skipped = 0
        self._begin = self._said = time.perf_counter()
        self._bar: Any = None
        self._shown = 0

    def __enter__(self) -> Progress:
        if self._has_bar:
            from tqdm import tqdm

            self._bar = tqdm(
                total=self._total,
                initial=self._skipped,
                unit="B",
                unit_scale=True,
                leave=False,
                file=sys.stderr,
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def skip(self, size: int) -> None:
        """Bytes on the disk that an earlier process has read."""
        self._skipped = self._shown = size

    def advance(self, read: int, totals: Totals) -> None:
        """Bytes on the disk that this process has read, and the totals."""
        read += self._skipped
        if self._bar is not None:
            rate = self._rate(totals.tokens - self._before.tokens)
            self._bar.set_postfix_str(f"{totals.tokens:,} tokens, {rate}", refresh=False)
            self._bar.update(read - self._shown)
            self._shown = read
        elif self._every and time.perf_counter() - self._said >= self._every:
            self._said = time.perf_counter()
            self._log(read, totals)

    def _rate(self, tokens: int) -> str:
        seconds = time.perf_counter() - self._begin
        return f"{tokens / max(seconds, 1e-9) / 1e6:.2f} M/s"

    def _log(self, read: int, totals: Totals) -> None:
        if self._is_json:
            say(json.dumps({"progress": _row(totals, self._seconds())}), prefix="")
            return
        seconds = self._seconds()
        speed = (totals.bytes - self._before.bytes) / seconds / 1e6
        text = f"{totals.bytes:,} bytes, {totals.tokens:,} tokens, {speed:.1f} MB/s"
        if self._total and read > self._skipped:
            left = (self._total - read) * seconds / (read - self._skipped)
            text += f", {read / self._total:.0%}, {left:.0f} s left"
        say(text)

    def _seconds(self) -> float:
        return max(time.perf_counter() - self._begin, 1e-9)

    def summary(self, totals: Totals, has_documents: bool, warning: str | None = None) -> None:
        """Say what was done; has_documents: their number is not that of the inputs. warning: what
        the user should know of the output, a line of its own or a field of the JSON.
        """
        seconds = self._seconds()
        if self._is_json:
            row: dict[str, Any] = {**_row(totals, seconds)}
            say(json.dumps(row | ({"warning": warning} if warning else {})), prefix="")
            return
        ratio = f", {totals.bytes / totals.tokens:.2f} bytes per token" if totals.tokens else ""
        speed = (totals.bytes - self._before.bytes) / seconds / 1e6
        text = f"{totals.inputs} input{'' if totals.inputs == 1 else 's'}, "
        if has_documents:
            text += f"{totals.documents:,} document{'' if totals.documents == 1 else 's'}, "
        if totals.skipped:
            text += f"{totals.skipped:,} skipped, "
        text += f"{totals.bytes:,} bytes, {totals.tokens:,} tokens{ratio}"
        say(f"{text}, {seconds:.2f} s ({speed:.1f} MB/s)")
        if warning:
            say(f"warning: {warning}")


def _row(totals: Totals, seconds: float) -> dict[str, float]:
    ratio = round(totals.bytes / totals.tokens, 4) if totals.tokens else 0.0
    return {
        "files": totals.inputs,
        "documents": totals.documents,
        "skipped": totals.skipped,
        "bytes": totals.bytes,
        "tokens": totals.tokens,
        "seconds": round(seconds, 6),
        "bytes_per_token": ratio,
    }


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
