"""The program; `__init__.py` says what it does."""

from __future__ import annotations

import argparse
import collections
import faulthandler
import os
import random
import signal
import subprocess
import sys
import time

from streamtok import StreamtokError

from . import __doc__ as about
from .calls import CALLS, Ask, DifferentIds, narrow_paths
from .hf_settings import one_round as settings_round
from .subjects import FAMILIES, any_subject
from .texts import random_size, random_text

TEXTS = 8  # of one encoding
LONGEST_ROUND = 300.0  # seconds after which a call is taken for endless
# Characters: of a longer text, some calls are asked. Where text is changed before it is cut into
# pre-tokens, part of that is done in Python.
ASKED_OF_ALL, ASKED_OF_ALL_CHANGED = 5_000, 600
LONGEST_CHANGED = 20_000


def one_round(
    seed: int, threads: list[int], family: str | None = None, most: int = 1 << 23
) -> collections.Counter[str]:
    """Make an encoding and texts, and ask for their ids; what was asked how often."""
    rng = random.Random(seed)
    counts: collections.Counter[str] = collections.Counter()
    subject = any_subject(rng, family)
    asked_of_all = ASKED_OF_ALL
    if subject.encoding._cuts is None:
        most, asked_of_all = min(most, LONGEST_CHANGED), ASKED_OF_ALL_CHANGED
    size = 0
    for _ in range(TEXTS):
        if size > 1 << 20:  # enough for this encoding
            break
        text: str | bytes = random_text(rng, subject, random_size(rng, most))
        size += len(text)
        errors = "strict"
        if rng.random() < 0.1:
            errors = rng.choice(["replace", "surrogateescape"])
            at = rng.randint(0, len(text))
            text = text[:at].encode() + rng.randbytes(rng.randint(1, 9)) + text[at:].encode()
        options = {
            "allowed_special": "all" if rng.random() < 0.7 else frozenset(),
            "disallowed_special": (),
            "errors": errors,
        }
        ask = Ask(subject, text, options, rng.choice(threads), rng)
        try:
            ask.plain(text)
        except (StreamtokError, ValueError, OverflowError):
            counts["texts that are refused"] += 1
            continue
        names = [*CALLS]
        if len(text) > asked_of_all:
            names = rng.sample(names, 3 if len(text) < 1 << 19 else 2)
        for name in names:
            with narrow_paths(rng, ask.threads):
                try:
                    CALLS[name](ask)
                except DifferentIds as error:
                    shown = text if len(text) < 200 else f"{len(text)} of {text[:100]!r}…"
                    raise DifferentIds(
                        f"{subject.family}, {name}: {error}\n  text {shown!r}\n  {options}"
                    ) from error
            counts[name] += 1
        counts["answers"] += ask.asked
        counts["texts"] += 1
        counts["characters"] += len(text)
    counts[f"of {subject.family}"] += 1
    return counts


def rounds(options: argparse.Namespace) -> int:
    """Rounds until the time is over; each says first that it begins."""
    start, counts = time.monotonic(), collections.Counter[str]()
    number = 0
    while not number or time.monotonic() - start < options.seconds:
        seed = options.seed * 1_000_000_007 + number if options.repeat is None else options.repeat
        number += 1
        print(f"{BEGINS}{seed}", flush=True)
        faulthandler.dump_traceback_later(LONGEST_ROUND, exit=True)
        try:
            if options.hf_settings:
                counts += settings_round(seed, max(options.threads))
            else:
                counts += one_round(seed, options.threads, options.family)
        except DifferentIds as error:
            print(f"DIFFERENT {error}", flush=True)
            return 1
        if options.repeat is not None:
            break
    faulthandler.cancel_dump_traceback_later()
    shown = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
    print(f"{number} rounds in {time.monotonic() - start:.0f} s, seed {options.seed}: {shown}")
    return 0


BEGINS = "round "


def watched(arguments: list[str]) -> int:
    """Run the rounds in a process of their own, so that a crash has a seed."""
    start, seed = time.monotonic(), ""
    # A sanitizer's library comes in by the environment, and so does its address space.
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.long.doors", *arguments],
        stdout=subprocess.PIPE, text=True, env={**os.environ, INSIDE: "1"},
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(BEGINS):
            seed = line.removeprefix(BEGINS).strip()
        else:
            print(line, end="", flush=True)
    status = process.wait()
    if status:
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        again = " ".join(["python -m tests.long.doors", *without(arguments), "--repeat", seed])
        print(f"FOUND after {time.monotonic() - start:.1f} s ({how}): {again}", flush=True)
        return 1
    return 0


INSIDE = "STREAMTOK_DOORS_INSIDE"


def without(arguments: list[str]) -> list[str]:
    """All but those that say how long and from where."""
    return [a for a in arguments if not a.startswith(("--seconds=", "--seed=", "--repeat="))]


def numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.long.doors", description=about.split("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=numbers, default=[1, 2, 4], help="default: 1,2,4")
    parser.add_argument("--family", choices=FAMILIES, help="of this family only")
    parser.add_argument("--repeat", type=int, help="one round, with this seed")
    parser.add_argument(
        "--hf-settings", action="store_true",
        help="threads use one streamtok.hf tokenizer while others change its settings",
    )  # fmt: skip
    options = parser.parse_args()
    if os.environ.get(INSIDE):
        return rounds(options)
    arguments = [f"--seconds={options.seconds}", f"--seed={options.seed}"]
    arguments += [f"--threads={','.join(map(str, options.threads))}"]
    arguments += [f"--family={options.family}"] if options.family else []
    arguments += [f"--repeat={options.repeat}"] if options.repeat is not None else []
    arguments += ["--hf-settings"] if options.hf_settings else []
    return watched(arguments)


if __name__ == "__main__":
    sys.exit(main())
