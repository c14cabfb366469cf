"""Runs one of the long programs: one random case after the other, until the time is over.

    python -m tests.long cuts --seconds 600
    python -m tests.long streams --seconds 600 --seed 7
    python -m tests.long streams --repeat 7000000012 --steps 0-13,21

A case is a function of its seed. All run in a process of their own that says each seed before it
begins, so that a crash and a hang have a seed as well as a difference has. What fails is printed
with the command that repeats it; a case that consists of steps is then tried with fewer and fewer.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import functools
import importlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from .steps import joined, length, parsed, run_machine, shrunk

ROUNDS = {  # name: what does the case of a seed, and its module
    "cuts": "cuts:one_round", "calls": "calls.rounds:one_round",
    "hf-settings": "calls.hf_settings:one_round", "loaders": "loader_fuzz:one_round",
    "kills": "crash:one_round", "kills-in-parts": "crash_scale:one_round",
    "kills-in-parts-s3": "crash_scale:one_round_s3", "followers": "followers:one_round",
    "files": "encoded_files:one_round", "prompts": "prompts:one_round",
    "random-merges": "random_tokenizers.rounds:one_round",
    "random-pieces": "random_tokenizers.rounds:one_round_of_pieces",
    "random-sentencepieces": "random_tokenizers.sentencepieces:one_round",
}  # fmt: skip
MACHINES = {  # those whose cases have steps
    "streams": "states.stream:StreamMachine", "decoders": "states.decoder:DecoderMachine",
    "trainers": "states.trainer:TrainerMachine", "jobs": "states.pipeline:PipelineMachine",
}  # fmt: skip
BEGINS = "round "
SPACE = 1_000_000_007  # seeds of cases between two seeds of runs
LONGEST = 300.0  # seconds after which a case is taken for endless
SHRINK = 60.0  # seconds

Round = Callable[[int, "Sequence[int] | None"], "collections.Counter[str]"]


def round_of(program: str) -> Round:
    """What does a case, given its seed and perhaps its steps."""
    module, _, name = {**ROUNDS, **MACHINES}[program].partition(":")
    found = getattr(importlib.import_module(f".{module}", __package__), name)
    if program in MACHINES:
        return functools.partial(run_machine, found)
    return lambda seed, steps: found(seed)


def work(options: argparse.Namespace) -> int:
    """The rounds, in the process that may die."""
    one_round = round_of(options.program)
    start = said = time.monotonic()
    counts: collections.Counter[str] = collections.Counter()
    number = 0
    while number != options.rounds and (not number or time.monotonic() - start < options.seconds):
        seed = options.seed * SPACE + number if options.repeat is None else options.repeat
        number += 1
        print(f"{BEGINS}{seed}", flush=True)
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        try:
            counts += one_round(seed, options.steps)
        except AssertionError as error:
            print(f"DIFFERENCE: {error}", flush=True)
            return 1
        if options.repeat is not None:
            break
        if time.monotonic() - said > 30:
            said = time.monotonic()
            print(f"{number} rounds, {said - start:.0f} s, no difference", flush=True)
    faulthandler.cancel_dump_traceback_later()
    for what, count in sorted(counts.items()):
        print(f"  {what:<40}{count:>12,}")
    print(
        f"{number} rounds in {time.monotonic() - start:.0f} s, seed {options.seed}: no difference"
    )
    return 0


def lines_of(arguments: list[str]) -> Iterator[str | int]:
    """What another process says that does this work; in the end its exit code."""
    # A new process: a sanitizer's library is preloaded, and does not stand forks of threads.
    command = [sys.executable, "-m", "tests.long", *arguments, "--inside"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from process.stdout
        yield process.wait()


def watch(options: argparse.Namespace) -> int:
    """Run the rounds in another process; say how to repeat what ended it."""
    given = [options.program, f"--seconds={options.seconds}", f"--seed={options.seed}"]
    given += [f"--rounds={options.rounds}"]
    if options.repeat is not None:
        given += [f"--repeat={options.repeat}"]
        if options.steps is not None:
            given.append(f"--steps={joined(options.steps)}")
    start, seed, code = time.monotonic(), "", 0
    for line in lines_of(given):
        if isinstance(line, int):
            code = line
        elif line.startswith(BEGINS):
            seed = line.removeprefix(BEGINS).strip()
        else:
            print(line, end="", flush=True)
    if not code:
        return 0
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    again = [options.program, "--repeat", seed]
    command = f"python -m tests.long {' '.join(again)}"
    print(f"FOUND after {time.monotonic() - start:.1f} s ({how}): {command}", flush=True)
    if options.repeat is None and options.program in MACHINES:
        few = shrunk(
            range(length(int(seed))),
            lambda steps: [*lines_of([*again, f"--steps={joined(steps)}"])][-1] != 0,
            SHRINK,
        )
        print(f"with fewer steps: {command} --steps {joined(few)}", flush=True)
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.long", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("program", choices=[*ROUNDS, *MACHINES])
    parser.add_argument("--seconds", type=float, default=60.0, help="default: 60")
    parser.add_argument("--rounds", type=int, default=-1, help="end after so many")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--repeat", type=int, help="one case, with the seed that was printed")
    parser.add_argument("--steps", type=parsed, help="with --repeat: these steps only")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    return work(options) if options.inside else watch(options)


if __name__ == "__main__":
    sys.exit(main())
