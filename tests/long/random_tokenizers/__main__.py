"""The command; see `__init__.py`."""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import os
import sys
import tempfile
import time
from pathlib import Path

from ...tokenizer_files import random_piece_file
from . import __doc__ as description
from .checks import Outcome, check_seed
from .finds import describe, replay, save, shrink
from .sentencepieces import check_model
from .workers import Check, outcomes_here, outcomes_of_workers

SHOWN = 400  # characters of texts and ids
PROGRESS = 10_000  # cases from one line about it to the next


class Report:
    """What came out, as far as it went; refusals by message, with a seed of each."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.refusals: collections.Counter[str] = collections.Counter()
        self.examples: dict[str, int] = {}

    def add(self, outcome: Outcome) -> None:
        self.counts.update(outcome.counts)
        if outcome.refusal is not None:
            self.refusals[outcome.refusal] += 1
            known = self.examples.setdefault(outcome.refusal, outcome.seed)
            self.examples[outcome.refusal] = min(known, outcome.seed)

    def text(self, seconds: float) -> str:
        counted = ", ".join(f"{key} {number}" for key, number in self.counts.items())
        lines = [f"{counted}; {seconds:.0f} s"]
        for message, number in self.refusals.most_common(60):
            example = self.examples[message]
            lines.append(f"{number:7} refused, such as seed {example}: {message}")
        return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """0 if there is no difference."""
    number = lambda text: int(text.replace("_", ""))  # noqa: E731
    parser = argparse.ArgumentParser(
        prog="python -m tests.long.random_tokenizers",
        description=(description or "").split("\n", 1)[0],
    )
    parser.add_argument("--cases", type=number, default=1000)
    parser.add_argument("--seed", type=number, default=1, help="of the first case; the next is +1")
    parser.add_argument("--workers", type=int, default=1, help="processes; 1: this one")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--pieces", action="store_true", help="WordPiece, WordLevel and Unigram")
    kinds.add_argument("--sentencepiece", action="store_true", help="SentencePiece's models")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--finds", type=int, default=10, help="stop after so many")
    parser.add_argument("--save", type=Path, default=Path("random_tokenizers_found"))
    parser.add_argument("--but", nargs="+", default=[], help="kinds of finds to pass over")
    parser.add_argument("--replay", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    os.environ["STREAMTOK_CACHE"] = "off"  # a cache of loaded files must not grow with each
    os.environ["RUST_BACKTRACE"] = "0"
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of workers: they share the processors
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.replay:
            return max(replay(path, folder) for path in options.replay)
        return check(options, folder)


def check(options: argparse.Namespace, folder: Path) -> int:
    """Check the cases that are asked for, and print what is found."""
    report, start = Report(), time.monotonic()
    seeds = range(options.seed, options.seed + options.cases)
    check_one: Check = check_model if options.sentencepiece else check_seed
    if options.pieces:
        check_one = functools.partial(check_seed, make=random_piece_file)
    if options.workers > 1:
        outcomes = outcomes_of_workers(seeds, options.workers, check_one)
    else:
        outcomes = outcomes_here(seeds, check_one)
    with contextlib.closing(outcomes):  # ends the workers
        for outcome in outcomes:
            report.add(outcome)
            difference = outcome.difference
            if difference is not None and difference.kind in options.but:
                report.counts[f"passed over: {difference.kind}"] += 1
                report.counts["different"] -= 1
            elif difference is not None:
                print(found_text(outcome, options.save, folder), flush=True)
            if report.counts["files"] % PROGRESS == 0:
                passed = f"{time.monotonic() - start:.0f} s"
                print(f"{report.counts['files']} cases in {passed}", file=sys.stderr, flush=True)
            is_enough = report.counts["different"] >= options.finds
            if is_enough or time.monotonic() - start > options.seconds:
                break
    print(report.text(time.monotonic() - start))
    return 1 if report.counts["different"] else 0


def found_text(outcome: Outcome, saved: Path, folder: Path) -> str:
    """A find as text; it is made small and saved."""
    seed, difference = outcome.seed, outcome.difference
    assert difference is not None
    if outcome.file is None:
        again = f"--cases 1 --seed {seed}, with the same kind of files"
        return (
            f"seed {seed}: {difference.kind}: text {difference.text[:SHOWN]!a}\n"
            f"  cuts {difference.how}\n"
            f"  expected {str(difference.expected)[:SHOWN]}\n"
            f"  found    {str(difference.found)[:SHOWN]}\n  again: {again}"
        )
    path = save(saved, seed, outcome.file, difference)  # as it is: what follows may crash
    file, difference = shrink(outcome.file, difference, folder)
    save(saved, seed, file, difference)
    return f"seed {seed}: {path}\n{describe(file, difference)}"


if __name__ == "__main__":
    sys.exit(main())
