"""Convert compressed JSON lines to the two files of Megatron-LM, in spite of crashes.

    python corpus_to_megatron.py 'crawl/*.jsonl.zst' corpus --field text

runs `streamtok encode --resume` until it is done. Whatever kills it (the machine, the OOM killer,
Ctrl-C), it continues from its last checkpoint, even if this program itself is started again. The
result is byte for byte that of an uninterrupted run. Then it is read back and summed up.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import streamtok


def encode(pattern: str, output: str, field: str, encoding: str, tries: int) -> None:
    """Run the command until it succeeds. Raises SystemExit if it says that it cannot."""
    command = [
        *(sys.executable, "-m", "streamtok", "encode", "--glob", pattern, "--jsonl", field),
        *("-e", encoding, "--append", "<|endoftext|>", "--skip-bad-lines"),
        *("--format", "megatron", "-o", output, "--resume", "--checkpoint-every", "2", "--quiet"),
    ]
    for attempt in range(1, tries + 1):
        code = subprocess.run(command, check=False).returncode
        if code == 0:
            return
        if code in (1, 2):  # a message on standard error says why; trying again would not help
            sys.exit(code)
        print(f"stopped by signal {-code}; attempt {attempt} of {tries}", file=sys.stderr)
        time.sleep(0.1)
    sys.exit(f"gave up after {tries} attempts; the same command goes on")


class Corpus:
    """Documents of Megatron-LM's `.bin` and `.idx`, which are memory-mapped."""

    def __init__(self, prefix: str) -> None:
        index = Path(f"{prefix}.idx").read_bytes()
        magic, version, code, sequences, _ = struct.unpack_from("<9sQBQQ", index)
        if magic != b"MMIDIDX\0\0" or version != 1:
            raise ValueError(f"{prefix}.idx is not an index of Megatron-LM")
        dtype = {4: np.dtype("<i4"), 8: np.dtype("<u2")}[code]
        self._ids = np.memmap(f"{prefix}.bin", dtype, "r")
        self._lengths = np.frombuffer(index, "<i4", sequences, 34)
        pointers = np.frombuffer(index, "<i8", sequences, 34 + self._lengths.nbytes)
        self._starts = pointers // dtype.itemsize

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, number: int) -> np.ndarray:
        """The ids of one document."""
        start = self._starts[number]
        return self._ids[start : start + self._lengths[number]]

    @property
    def tokens(self) -> int:
        return len(self._ids)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("pattern", help="the files; ** matches any folders")
    parser.add_argument("output", help="OUTPUT.bin and OUTPUT.idx are made")
    parser.add_argument("--field", default="text", help="of each line's JSON (default: text)")
    parser.add_argument("-e", "--encoding", default="gpt2")
    parser.add_argument("--tries", type=int, default=100)
    args = parser.parse_args()
    encode(args.pattern, args.output, args.field, args.encoding, args.tries)
    corpus = Corpus(args.output)
    print(f"{len(corpus)} documents, {corpus.tokens} tokens")
    if len(corpus):
        is_file = Path(args.encoding).exists()
        encoding = (streamtok.load if is_file else streamtok.get_encoding)(args.encoding)
        print("the first one begins:", encoding.decode(corpus[0][:12]))


if __name__ == "__main__":
    main()
