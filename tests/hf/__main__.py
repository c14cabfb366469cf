"""The matrix of calls over real files: `python -m tests.hf tokenizer.json …`.

Prints for each who encodes, how many calls were compared and which differ; the exit code is 1 if
any does.
"""

from __future__ import annotations

import sys

from tokenizers import Tokenizer

import streamtok.hf

from .shapes import TEXTS, differences


def main(paths: list[str]) -> int:
    total = 0
    for path in paths:
        ours = streamtok.hf.Tokenizer.from_file(path)
        n, found = differences(ours, Tokenizer.from_file(path), TEXTS)
        why = f" ({ours.reason})" if ours.reason else ""
        print(f"{path}: {ours.engine}{why}, {n} calls, {len(found)} differences")
        for call in found:
            print(f"    {call}")
        total += len(found)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
