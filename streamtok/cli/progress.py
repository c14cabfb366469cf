"""The progress of a run on standard error, as a bar or as occasional lines, and its summary."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..jobs.rows import Totals
from .messages import is_terminal, say, shown

EVERY = 30.0  # seconds between lines if there is no terminal
_SOON = 0.1  # seconds before a bar appears


class Made(NamedTuple):
    """The output of a run. dtype: of the ids; None for text. output: a path or "-"."""

    encoding: str
    format: str
    dtype: str | None
    output: str

    def __str__(self) -> str:
        is_said = self.dtype is None or self.format in ("u16", "u32")
        width = "" if is_said else f" ({self.dtype})"
        where = "" if self.output == "-" else f" in {shown(self.output)}"
        return f"{self.encoding} as {self.format}{width}{where}"


class Progress:
    """Shows the progress of a run, as a bar on a terminal and otherwise as lines, and a summary.

    Speeds are those of this process. Totals include earlier processes of the run.
    """

    def __init__(self, args: argparse.Namespace, sizes: list[int | None], before: Totals):
        """sizes: bytes of each input on disk, None if unknown. before: totals of past processes."""
        self._is_json = args.json
        is_shared = args.output == "-" and is_terminal(sys.stdout)  # the same screen shows the ids
        is_silent = args.quiet or is_shared
        self._has_bar = not (is_silent or args.json) and is_terminal(sys.stderr)
        self._has_lines = not (is_silent or self._has_bar)
        known = [size for size in sizes if size is not None]
        self._total = sum(known) if sizes and len(known) == len(sizes) else None
        self._before = before
        self._skipped = sum(
            size or 0 for size in sizes[: before.inputs]
        )  # earlier processes' bytes
        self._begin = self._said = time.perf_counter()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Progress:
        bar = show_bar(not self._has_bar, None, self._total, "B")
        self._move_bar = self._stack.enter_context(bar)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def advance(self, read: int, totals: Totals) -> None:
        """Show the progress. read: bytes read from disk so far."""
        seconds = self._seconds()
        if self._has_bar:
            rate = (totals.tokens - self._before.tokens) / seconds / 1e6
            self._move_bar(read, self._total or 0, f"{totals.tokens:,} tokens, {rate:.2f} M/s")
            return
        now = time.perf_counter()
        if not self._has_lines or now - self._said < EVERY:
            return
        self._said = now
        if self._is_json:
            say(json.dumps({"progress": _row(totals, seconds)}), prefix="")
            return
        speed = (totals.bytes - self._before.bytes) / seconds / 1e6
        text = f"{totals.bytes:,} bytes, {totals.tokens:,} tokens, {speed:.1f} MB/s"
        if self._total and read > self._skipped:
            left = (self._total - read) * seconds / (read - self._skipped)
            text += f", {read / self._total:.0%}, {left:.0f} s left"
        say(text)

    def _seconds(self) -> float:
        return max(time.perf_counter() - self._begin, 1e-9)

    def summary(
        self, totals: Totals, has_documents: bool, made: Made, warning: str | None = None
    ) -> None:
        """Print the summary.

        has_documents: whether an input may hold several documents. warning: about the output,
        printed as a separate line or as a field of the JSON.
        """
        seconds = self._seconds()
        if self._is_json:
            row: dict[str, Any] = {**_row(totals, seconds), **made._asdict()}
            say(json.dumps(row | ({"warning": warning} if warning else {})), prefix="")
            return
        ratio = f", {totals.bytes / totals.tokens:.2f} bytes per token" if totals.tokens else ""
        speed = (totals.bytes - self._before.bytes) / seconds / 1e6
        text = f"{totals.inputs} input{'' if totals.inputs == 1 else 's'}, "
        if has_documents:
            text += f"{totals.documents:,} document{'' if totals.documents == 1 else 's'}, "
        if totals.skipped:
            text += f"{totals.skipped:,} skipped ({totals.reasons}), "
        text += f"{totals.bytes:,} bytes, {totals.tokens:,} tokens{ratio}"
        say(f"{text}, {seconds:.2f} s ({speed:.1f} MB/s); {made}")
        if warning:
            say(f"warning: {warning}")


def _row(totals: Totals, seconds: float) -> dict[str, Any]:
    ratio = round(totals.bytes / totals.tokens, 4) if totals.tokens else 0.0
    return {
        "files": totals.inputs,
        "documents": totals.documents,
        "skipped": totals.skipped,
        "skipped_because": totals.skipped_because,
        "bytes": totals.bytes,
        "tokens": totals.tokens,
        "seconds": round(seconds, 6),
        "bytes_per_token": ratio,
    }


@contextlib.contextmanager
def show_bar(
    is_quiet: bool, what: str | None, total: int | None, unit: str
) -> Iterator[Callable[..., None]]:
    """Yield advance(done, total, note=""), which moves a bar if standard error is a terminal.

    total: None if unknown. Work of less than a tenth of a second shows no bar. The bar disappears
    at the end.
    """
    is_hidden = is_quiet or not is_terminal(sys.stderr)
    begun = time.perf_counter()
    bar: Any = None

    def advance(done: int, of: int, note: str = "") -> None:
        nonlocal bar
        if is_hidden or (bar is None and time.perf_counter() - begun < _SOON):
            return
        if bar is None:
            from tqdm import tqdm

            bar = tqdm(
                total=total, desc=what, unit=unit, unit_scale=True, leave=False, file=sys.stderr
            )
        bar.total = of or None
        bar.set_postfix_str(note, refresh=False)
        bar.update(done - bar.n)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.close()


@contextlib.contextmanager
def read_bar(is_quiet: bool, what: str, paths: Iterable[str]) -> Iterator[Callable[[int], None]]:
    """Yield add(size), to call with the number of bytes just read from `paths`."""
    done, total = 0, sum(map(_size, paths))
    with show_bar(is_quiet, what, total or None, "B") as advance:

        def add(size: int) -> None:
            nonlocal done
            done += size
            advance(done, total)

        yield add


def counted(blocks: Iterator[bytes], add: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the blocks, and pass the size of each to `add`."""
    for block in blocks:
        add(len(block))
        yield block


def _size(path: str) -> int:
    """The size of a file, or of all files in a folder; 0 if unknown, as for a pipe or a URL."""
    if os.path.isdir(path):
        return sum(one.stat().st_size for one in os.scandir(path) if one.is_file())
    return os.path.getsize(path) if os.path.isfile(path) else 0
