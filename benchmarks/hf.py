"""Whole calls through transformers, with each installed engine: `python -m benchmarks.hf`.

`python -m benchmarks.hf --cores 1 Qwen3-8B/ MiniLM/ gemma.json` times real files on one core.

All engines get the same tokenizer. Each answer of streamtok must equal that of tokenizers, or
nothing is timed. Another engine is not timed if it raises or its answer differs, even only in the
type of numbers in a matrix (gigatoken returns uint32, transformers int64). The engines take turns,
and the minimum of all rounds is shown, because other programs on the machine can only add time.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tokenizers
import transformers

import streamtok
import streamtok.hf

from . import corpus, turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument(
        "files", nargs="*", type=Path, help="tokenizer.json or models' folders; none: o200k_base"
    )
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", default="", help="calls with this in their names")
    parser.add_argument("--cores", type=int, help="number of processors to run on")
    parser.add_argument("--corpora", nargs="+", default=["english", "code", "multilingual"])
    parser.add_argument(
        "--cpu", action="store_true", help="measure processor time of all threads, not elapsed time"
    )
    args = parser.parse_args()
    if args.cores:  # before the first call, when libraries start their threads
        os.environ["RAYON_NUM_THREADS"] = str(args.cores)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    clock = time.process_time if args.cpu else time.perf_counter
    gc.disable()  # a collection takes up to 80 ms, which would count against one library
    with tempfile.TemporaryDirectory() as folder:
        if not args.files:
            args.files = [Path(folder, "o200k_base.json")]
            streamtok.formats.save_huggingface(streamtok.get_encoding("o200k_base"), *args.files)

        def rows() -> Iterator[list[str]]:
            for file, kind in itertools.product(args.files, args.corpora):
                text = corpus.generated(kind).decode("utf-8", "ignore")
                for what, times in measure(file, text, args.rounds, args.only, clock):
                    shown = [f"{1e3 * times[x]:.2f}" if x in times else "-" for x in ENGINES]
                    best = min(found for name, found in times.items() if name != "streamtok")
                    ratio = f"{best / times['streamtok']:.2f}"
                    yield [file.name, kind, what, ", ".join(shown), ratio]

        print(f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}\n")
        columns = ["file", "text", "call", f"{', '.join(ENGINES)}, ms", "of the best other"]
        turns.show(columns, rows())


def measure(
    file: Path,
    text: str,
    rounds: int,
    only: str = "",
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[tuple[str, dict[str, float]]]:
    """(call, seconds by engine) of each call with `only` in its name."""
    made = {name: tokenizer for name in ENGINES if (tokenizer := _made(name, file)) is not None}
    assert made["streamtok"].backend_tokenizer.engine == "streamtok"
    for what, call in calls(text).items():
        if only in what:
            compared = {x: lambda call=call, t=t: plain(call(t)) for x, t in made.items()}
            timed = {x: lambda call=call, t=made[x]: call(t) for x in turns.only_equal(compared)}
            times = turns.in_turns(timed, rounds, clock)
            yield what, {name: min(taken) for name, taken in times.items()}


def _made(engine: str, file: Path) -> Any:
    """The tokenizer of an engine; None if that is not installed, or is a peer that refuses the
    file.
    """
    if find_spec(engine) is None:
        return None
    try:
        return ENGINES[engine](file)
    except Exception as error:
        if engine in ("tokenizers", "streamtok"):
            raise
        print(f"{file.name}: {engine}: {str(error).splitlines()[0]}", file=sys.stderr)
        return None


def loaded(file: Path) -> Any:
    """file: a tokenizer.json, or the folder of a model whose class transformers knows."""
    if Path(file, "tokenizer_config.json").exists():
        made = transformers.AutoTokenizer.from_pretrained(file, local_files_only=True)
    else:
        json = file / "tokenizer.json" if file.is_dir() else file
        made = transformers.PreTrainedTokenizerFast(tokenizer_file=str(json))
    if made.pad_token is None:
        made.pad_token = made.convert_ids_to_tokens(0)
    return made


def _gigatoken(file: Path) -> Any:
    import gigatoken

    return gigatoken.Tokenizer(loaded(file)).as_hf()


def _fastokens(file: Path) -> Any:
    import fastokens

    fastokens.patch_transformers()
    try:
        return loaded(file)
    finally:
        fastokens.unpatch_transformers()


ENGINES: dict[str, Callable[[Path], Any]] = {
    "tokenizers": loaded,  # the reference
    "streamtok": lambda file: streamtok.hf.accelerate(loaded(file)),
    "gigatoken": _gigatoken,
    "fastokens": _fastokens,
}


def calls(text: str) -> dict[str, Callable[[Any], Any]]:
    """The calls that programs make."""
    starts = range(0, min(len(text), 1_000_000), 1000)
    rows = [text[at : at + 1000] for at in starts][: max(1, len(text) // 1000)]
    large = [text[at : at + 100_000] for at in range(0, len(text) - 99_999, 100_000)][:10]
    small = rows[:200]

    def step_by_step(t: Any) -> str:
        backend = t.backend_tokenizer
        is_ours = type(backend) is streamtok.hf.Tokenizer
        kind = streamtok.hf.DecodeStream if is_ours else tokenizers.decoders.DecodeStream
        stream = kind(skip_special_tokens=True)
        # The whole text: streamtok emits what is before an unfinished character at once.
        return "".join([stream.step(backend, id) or "" for id in ids(t)])

    @cache
    def ids(t: Any) -> list[int]:
        return t(text[:20_000])["input_ids"]

    padded: dict[str, Any] = {"padding": True, "return_tensors": "np"}
    return {
        f"{len(rows):,} texts of 1 KB": lambda t: t(rows),
        f"{len(large)} calls with 100 KB each": lambda t: [t(one) for one in large],
        f"{len(small)} calls with 1 KB each": lambda t: [t(one) for one in small],
        "a padded matrix": lambda t: t(rows, **padded),
        "cut to 128, padded": lambda t: t(rows, truncation=True, max_length=128, **padded),
        "with offsets": lambda t: t(rows, return_offsets_mapping=True),
        "100 KB with offsets": lambda t: t(text[:100_000], return_offsets_mapping=True),
        "decode at once": lambda t: t.decode(ids(t)),
        "decode id by id": step_by_step,
    }


def plain(found: Any) -> Any:
    """The answer as plain values that can be compared."""
    if isinstance(found, dict | transformers.BatchEncoding):
        return {name: plain(value) for name, value in found.items()}
    if isinstance(found, list) and found and not isinstance(found[0], int | str):
        return [plain(one) for one in found]
    return (str(found.dtype), found.tolist()) if hasattr(found, "tolist") else found


if __name__ == "__main__":
    main()
