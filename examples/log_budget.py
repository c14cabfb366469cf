"""Count the tokens of a growing log, and raise an alarm when a budget is spent.

    python log_budget.py app.log --every 60 --budget 100k

Each interval prints a line of JSON: the tokens of the interval and of the last hour. What the log
holds at the start is read, but not counted. If the hour has more tokens than the budget, the line
has `"alarm": true`. `--run COMMAND` runs once each time the budget becomes exceeded.
The log may be rotated or truncated. Memory stays constant: ids are counted, not kept.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator

import streamtok

HOUR = 3600.0


def follow(path: str) -> Iterator[bytes]:
    """Blocks of the file as it grows; b"" when there is nothing new.

    A renamed file is read to its end, then the new file of this name from its beginning.
    """
    while True:
        if not os.path.exists(path):
            yield b""
            continue
        with open(path, "rb", buffering=0) as file:
            while True:
                block = file.read(1 << 16)
                yield block
                if block:
                    continue
                here = os.fstat(file.fileno())
                if os.path.exists(path) and os.stat(path).st_ino != here.st_ino:
                    break
                if here.st_size < file.tell():  # truncated
                    file.seek(0)


class Budget:
    """The tokens of the last hour, and whether there are too many."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._parts: collections.deque[tuple[float, int]] = collections.deque()
        self.spent = 0
        self.is_exceeded = False

    def spend(self, tokens: int, now: float) -> bool:
        """Add tokens spent at `now`; True if the budget is exceeded now and was not before."""
        self._parts.append((now, tokens))
        self.spent += tokens
        while self._parts and self._parts[0][0] <= now - HOUR:
            self.spent -= self._parts.popleft()[1]
        before, self.is_exceeded = self.is_exceeded, self.spent > self.limit
        return self.is_exceeded and not before


def parse_count(text: str) -> int:
    """The number that "500", "100k" or "2M" stands for."""
    found = re.fullmatch(r"(\d+)([kM]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number such as 500, 100k or 2M")
    return int(found[1]) * {"": 1, "k": 1000, "M": 1_000_000}[found[2]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("log")
    parser.add_argument("-e", "--encoding", default="cl100k_base")
    parser.add_argument("--every", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--budget", type=parse_count, default=parse_count("1M"), metavar="TOKENS")
    parser.add_argument("--run", metavar="COMMAND", help="run this at each alarm")
    parser.add_argument("--intervals", type=int, help="stop after so many (default: never)")
    args = parser.parse_args()

    encoding = streamtok.get_encoding(args.encoding)
    # A log may hold any bytes, and the text of a special token.
    stream = encoding.stream_encoder(errors="replace", disallowed_special=())
    budget = Budget(args.budget)
    counted = intervals = 0
    end = float("inf")  # until the log has been read to its end once
    for block in follow(args.log):
        stream.encode_to_numpy(block)  # the ids are not needed
        now = time.monotonic()
        if not block and end == float("inf"):
            counted, end = stream.tokens_out, now + args.every
        if now >= end:
            tokens, counted = stream.tokens_out - counted, stream.tokens_out
            is_alarm = budget.spend(tokens, now)
            row = {"tokens": tokens, "hour": budget.spent, "alarm": budget.is_exceeded}
            print(json.dumps(row), flush=True)
            if is_alarm and args.run:
                subprocess.run(shlex.split(args.run), check=False)
            end = now + args.every
            intervals += 1
            if intervals == args.intervals:
                return
        if not block:
            time.sleep(min(0.2, args.every / 10))


if __name__ == "__main__":
    main()
