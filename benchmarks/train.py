"""The trainers: `python -m benchmarks.compare --kinds train` asks for their samples.

Each sample is a process of its own that reads the same five files and trains on them, each file as
one text, with as many threads as cores. Memory is the largest resident set of the whole process,
including Python. Imports, and unpacking the result for the comparison, are not timed. `python -m
benchmarks.train TASK` takes one sample, like `worker.py`, which would import NumPy.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from . import corpus, turns

SIZES = (32_768, 100_000)
SLOW = ("rustbpe", "tokenizers")  # get one turn
# The pattern that all support: GPT-2's as published. gigatoken has no other.
PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TIMEOUT = 60  # seconds for one sample

Tokens = list[bytes]
Timed = tuple[float, Callable[[], Tokens]]  # seconds, and a function for the tokens after the bytes


def _streamtok(paths: list[str], vocab_size: int, tie: str) -> Timed:
    from streamtok import Trainer  # imports numpy

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
    "streamtok": ("streamtok", partial(_streamtok, tie="raw")),
    "streamtok, hf": ("streamtok", partial(_streamtok, tie="hf")),
    "gigatoken": ("gigatoken", _gigatoken),
    "ffbpe": ("ffbpe", _ffbpe),
    "rustbpe": ("rustbpe", _rustbpe),
    "tokenizers": ("tokenizers", _huggingface),
}


def _texts(paths: list[str]) -> Iterator[str]:
    for path in paths:
        yield Path(path).read_bytes().decode()


def sample(task: dict[str, Any]) -> dict[str, Any]:
    """Train once, in a process of its own, and return the result."""
    paths = [f"{task['train']}/{text}.txt" for text in corpus.NAMES]
    seconds, tokens = CONTENDERS[task["peer"]][1](paths, int(task["corpus"]))
    peak = turns.memory()
    digest = hashlib.sha256(b"".join(b"%d:%s," % (len(t), t) for t in tokens())).hexdigest()
    return {"seconds": seconds, "peak": peak, "digest": digest}


def installed() -> list[str]:
    """Names of the contenders that can be imported here, streamtok first."""
    return [n for n, (module, _) in CONTENDERS.items() if importlib.util.find_spec(module)]


if __name__ == "__main__":
    print(f"\n{json.dumps(sample(json.loads(sys.argv[1])))}")  # some leave an unfinished line
