"""Whole calls through transformers, with streamtok's engine and with tokenizers':
`python -m benchmarks.hf`.

Both get the same tokenizer, and each answer of one must be that of the other, or nothing is timed.
Times are medians of rounds in which both take turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
import transformers

import streamtok
import streamtok.hf

from . import corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--file", type=Path, help="a tokenizer.json; o200k_base without one")
    parser.add_argument("--corpora", nargs="+", default=["english", "code", "multilingual"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = args.file
        if file is None:
            file = Path(folder, "tokenizer.json")
            streamtok.formats.save_huggingface(streamtok.get_encoding("o200k_base"), file)
        print(f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}\n")
        print("| text | call | tokenizers, ms | streamtok, ms | times |\n|---|---|--:|--:|--:|")
        for kind in args.corpora:
            text = corpus.generated(kind).decode("utf-8", "ignore")
            with streamtok.hf.patched_transformers():  # which leaves real tokenizers as they are
                rows = measure(file, text, args.rounds)
            for what, theirs, ours in rows:
                print(
                    f"| {kind} | {what} | {1e3 * theirs:.2f} | {1e3 * ours:.2f} "
                    f"| {theirs / ours:.1f} |"
                )


def measure(file: Path, text: str, rounds: int) -> list[tuple[str, float, float]]:
    """(call, seconds with tokenizers, seconds with streamtok) of each call."""
    real, ours = loaded(file), streamtok.hf.accelerate(loaded(file))
    assert ours.backend_tokenizer.engine == "streamtok", ours.backend_tokenizer.reason
    found = []
    for what, call in calls(text).items():
        assert plain(call(ours)) == plain(call(real)), f"{what}: the answers are not the same"
        times: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(2 * rounds):
            tokenizer = ours if turn % 2 else real
            start = time.perf_counter()
            call(tokenizer)
            times[tokenizer is ours].append(time.perf_counter() - start)
        found.append((what, statistics.median(times[False]), statistics.median(times[True])))
    return found


def loaded(file: Path) -> Any:
    made = transformers.PreTrainedTokenizerFast(tokenizer_file=str(file))
    made.pad_token = made.convert_ids_to_tokens(0)
    return made


def calls(text: str) -> dict[str, Callable[[Any], Any]]:
    """The calls that programs make."""
    rows = [text[at : at + 1000] for at in range(0, 1_000_000, 1000)]
    rows = [row + "x" * (not row) for row in rows][: max(1, len(text) // 1000)]

    def step_by_step(t: Any) -> list[Any]:
        backend = t.backend_tokenizer
        kind = tokenizers.decoders.DecodeStream
        if type(backend) is streamtok.hf.Tokenizer:
            kind = streamtok.hf.DecodeStream
        stream = kind(skip_special_tokens=True)
        return [stream.step(backend, id) for id in ids(t)]

    known: dict[int, list[int]] = {}

    def ids(t: Any) -> list[int]:
        return known.setdefault(0, t(text[:20_000])["input_ids"])

    return {
        f"{len(rows):,} texts of 1 KB": lambda t: t(rows),
        "1 text of 100 KB": lambda t: t(text[:100_000]),
        "1 text of 1 KB": lambda t: t(rows[0]),
        "a padded matrix": lambda t: t(rows, padding=True, return_tensors="np"),
        "cut to 128, padded": lambda t: t(
            rows, padding=True, truncation=True, max_length=128, return_tensors="np"
        ),
        "with offsets": lambda t: t(rows, return_offsets_mapping=True),
        "tokens of 100 KB": lambda t: t.tokenize(text[:100_000]),
        "decode at once": lambda t: t.decode(ids(t)),
        "decode id by id": step_by_step,
    }


def plain(found: Any) -> Any:
    """What can be compared."""
    if isinstance(found, transformers.BatchEncoding):
        return {name: plain(value) for name, value in found.items()}
    return found.tolist() if hasattr(found, "tolist") else found


if __name__ == "__main__":
    main()
