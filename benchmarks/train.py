"""Trainers side by side: `python -m benchmarks.train --markdown`.

Equality first: a trainer has a ratio only if its tokens are those of one of streamtok's tie rules,
and the table says which. Each sample is a process of its own that reads the same five files and
trains on them, each file a text of its own, with as many threads as there are cores; the contenders
take turns, in an order that rotates. Figures are medians over the turns, ratios the medians of the
ratios within a turn. Memory is the greatest resident set of the whole process, Python and all.

Not timed: imports, and taking the result apart for the comparison.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import corpus

SIZES = (2048, 32_768, 100_000)
# What all can be given: the pattern of GPT-2 as published. gigatoken has no other.
PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_TIMEOUT = 60  # seconds for one sample
_ROOT = Path(__file__).resolve().parents[1]

Tokens = list[bytes]
Timed = tuple[float, Callable[[], Tokens]]  # seconds, and how to get at the tokens after the bytes


def _streamtok(paths: list[str], vocab_size: int, tie: str) -> Timed:
    from streamtok import Trainer  # which is when numpy is imported

    begin = time.perf_counter()
    trainer = Trainer(PATTERN)
    for path in paths:
        trainer.update_file(path)
    enc = trainer.train(vocab_size, tie=tie)  # type: ignore[arg-type]
    seconds = time.perf_counter() - begin
    return seconds, lambda: [enc.decode_single_token_bytes(i) for i in range(256, enc.n_vocab)]


def _rustbpe(paths: list[str], vocab_size: int) -> Timed:
    import rustbpe

    begin = time.perf_counter()
    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(_texts(paths), vocab_size, pattern=PATTERN)
    seconds = time.perf_counter() - begin
    return seconds, lambda: [bytes(token) for token, _ in tokenizer.get_mergeable_ranks()[256:]]


def _huggingface(paths: list[str], vocab_size: int) -> Timed:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    begin = time.perf_counter()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # GPT-2's pattern
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_texts(paths), trainer)
    seconds = time.perf_counter() - begin

    def tokens() -> Tokens:
        from streamtok.vocabulary.byte_alphabet import BYTES_OF

        merges = json.loads(tokenizer.to_str())["model"]["merges"]
        return [bytes(BYTES_OF[char] for char in a + b) for a, b in merges]

    return seconds, tokens


def _gigatoken(paths: list[str], vocab_size: int) -> Timed:
    import gigatoken

    begin = time.perf_counter()
    _, merges = gigatoken.train_bpe(gigatoken.TextFileSource(paths), vocab_size, [])
    seconds = time.perf_counter() - begin
    return seconds, lambda: [a + b for a, b in merges]


def _ffbpe(paths: list[str], vocab_size: int) -> Timed:
    import ffbpe

    begin = time.perf_counter()
    counter = ffbpe.PreTokenizer([], pat_str=PATTERN).word_counter()
    counter.add_source(_texts(paths))
    trainer = ffbpe.BpeTrainer([])
    trainer.add_word_counter(counter)
    trainer.train(vocab_size)
    seconds = time.perf_counter() - begin
    by_id = sorted((token_id, token) for token, token_id in trainer.vocab.items())
    return seconds, lambda: [token for token_id, token in by_id if token_id >= 256]


CONTENDERS: dict[str, tuple[str, Callable[[list[str], int], Timed]]] = {
    "streamtok": ("streamtok", lambda paths, size: _streamtok(paths, size, "raw")),
    "streamtok, hf": ("streamtok", lambda paths, size: _streamtok(paths, size, "hf")),
    "gigatoken": ("gigatoken", _gigatoken),
    "ffbpe": ("ffbpe", _ffbpe),
    "rustbpe": ("rustbpe", _rustbpe),
    "tokenizers": ("tokenizers", _huggingface),
}


def _texts(paths: list[str]) -> Iterator[str]:
    for path in paths:
        yield Path(path).read_bytes().decode()


def _sample(name: str, vocab_size: int, folder: str) -> None:
    """In a process of its own: train once, print what came of it."""
    paths = [os.path.join(folder, f"{text}.txt") for text in corpus.NAMES]
    seconds, tokens = CONTENDERS[name][1](paths, vocab_size)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if _is_mac() else 1024)
    found = tokens()
    digest = hashlib.sha256(b"".join(b"%d:%s," % (len(t), t) for t in found)).hexdigest()
    row = {"seconds": seconds, "peak": peak, "digest": digest, "tokens": 256 + len(found)}
    print(f"\n{json.dumps(row)}")


def _is_mac() -> bool:
    return sys.platform == "darwin"


def run(name: str, vocab_size: int, folder: str) -> dict[str, Any] | str:
    """One sample; or what went wrong."""
    command = [sys.executable, "-m", "benchmarks.train", "--sample", name]
    command += ["--sizes", str(vocab_size), "--folder", folder]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_TIMEOUT, check=False, text=True, cwd=_ROOT
        )
    except subprocess.TimeoutExpired:
        return f"more than {_TIMEOUT} s"
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return (done.stderr.strip().splitlines() or ["failed"])[-1]
    row: dict[str, Any] = json.loads(lines[-1])
    return row


def installed() -> list[str]:
    """Names of the contenders that can be imported here, streamtok first."""
    return [n for n, (module, _) in CONTENDERS.items() if importlib.util.find_spec(module)]


def write_texts(folder: Path, limit: int | None = None) -> Path:
    """Write the five texts, each to a file, into a new folder; limit: bytes of each."""
    folder.mkdir()
    for name in corpus.NAMES:
        (folder / f"{name}.txt").write_bytes(corpus.load(name, limit))
    return folder


def collect(sizes: list[int], rounds: int, folder: str) -> dict[int, list[dict[str, Any]]]:
    """By vocabulary size, for each turn, name → sample."""
    present = installed()
    turns: dict[int, list[dict[str, Any]]] = {}
    for size in sizes:
        turns[size] = []
        for turn in range(rounds):
            shift = turn % len(present)
            order = present[shift:] + present[:shift]
            samples = {name: run(name, size, folder) for name in order}
            for name in present:
                if name.startswith("streamtok") and isinstance(samples[name], str):
                    raise SystemExit(f"{name} at {size}: {samples[name]}")
            turns[size].append({name: samples[name] for name in present})
            if sys.stderr.isatty():
                print(f"{size}: turn {turn + 1} of {rounds}", file=sys.stderr)
    return turns


def same_as(turn: dict[str, Any], name: str) -> str:
    """Which of streamtok's tie rules gives the same tokens."""
    for tie, own in (("raw", "streamtok"), ("hf", "streamtok, hf")):
        if turn[name]["digest"] == turn[own]["digest"]:
            return tie
    return "neither"


def render(turns: dict[int, list[dict[str, Any]]]) -> Iterator[str]:
    """The table of the README."""
    yield "| vocabulary | trainer | merges as with `tie` | seconds | ÷ streamtok | peak MB |"
    yield "|---|---|---|---|---|---|"
    for size, rows in turns.items():
        for name in rows[0]:
            good = [row for row in rows if not isinstance(row[name], str)]
            if not good:
                yield f"| {size:,} | {name} | {rows[0][name]} | | | |"
                continue
            kinds = {same_as(row, name) for row in good}
            own = "streamtok, hf" if kinds == {"hf"} else "streamtok"
            seconds = statistics.median(row[name]["seconds"] for row in good)
            ratio = statistics.median(row[name]["seconds"] / row[own]["seconds"] for row in good)
            peak = statistics.median(row[name]["peak"] for row in good) / 1e6
            times = f"**{ratio:.1f}**" if name != own and "neither" not in kinds else ""
            kind = " / ".join(sorted(kinds))
            yield f"| {size:,} | {name} | {kind} | {seconds:.2f} | {times} | {peak:.0f} |"


def versions() -> str:
    found = [
        f"{module} {importlib.metadata.version(module)}"
        for module in dict.fromkeys(module for module, _ in CONTENDERS.values())
        if module != "streamtok" and importlib.util.find_spec(module)
    ]
    return ", ".join(found)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="nothing but the table")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--sample", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.sample:
        _sample(options.sample, sizes[0], options.folder)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = write_texts(Path(name, "texts"))
        total = sum(path.stat().st_size for path in folder.iterdir())
        turns = collect(sizes, options.rounds, str(folder))
    if not options.markdown:
        print(f"{total / 1e6:.1f} MB in {len(corpus.NAMES)} texts, {os.cpu_count()} cores, "
              f"Python {platform.python_version()}, {versions()}\n")  # fmt: skip
    print("\n".join(render(turns)))
    differ = [
        f"{name} at {size}"
        for size, rows in turns.items()
        for name in rows[0]
        if not isinstance(rows[0][name], str) and same_as(rows[0], name) == "neither"
    ]
    if differ:
        print(f"\nOther tokens than either tie rule gives: {', '.join(differ)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
