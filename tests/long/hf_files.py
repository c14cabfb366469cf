"""The matrix of calls over real files: `python -m tests.long.hf_files tokenizer.json … FOLDER …`.

Of a folder, all files `*.json` below it that are tokenizers. Prints for each who encodes, how many
calls were compared and which differ; the exit code is 1 if any does, or if streamtok does not
encode for one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer

import streamtok.hf

from ..hf.shapes import TEXTS, differences


def files_of(paths: list[str]) -> Iterator[str]:
    """The files, and those of the folders."""
    for path in paths:
        if not Path(path).is_dir():
            yield path
            continue
        for file in sorted(Path(path).rglob("*.json")):
            try:
                value = json.loads(file.read_bytes())
            except ValueError:
                continue
            if isinstance(value, dict) and {"model", "pre_tokenizer"} <= value.keys():
                yield str(file)


def main(paths: list[str]) -> int:
    total = 0
    for path in files_of(paths):
        ours = streamtok.hf.Tokenizer.from_file(path)
        n, found = differences(ours, Tokenizer.from_file(path), TEXTS)
        why = f" ({ours.reason})" if ours.reason else ""
        print(f"{path}: {ours.engine}{why}, {n} calls, {len(found)} differences")
        for call in found:
            print(f"    {call}")
        total += len(found) + (ours.engine != "streamtok")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
