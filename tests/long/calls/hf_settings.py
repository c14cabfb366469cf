"""Threads that use one `streamtok.hf` tokenizer while others change its settings."""

from __future__ import annotations

import collections
import functools
import json
import random
import threading
import time
from typing import Any

import streamtok.hf

from ...live_threads import together
from ...tokenizer_files import File, ids_of
from .subjects import any_subject, of_file

THREADS = 4  # that encode, and that change settings
SECONDS = 2.0  # of a round
LENGTHS = [1, 3, 8, 100]  # of truncation, some of them too little for the ids around a text

Row = tuple[int, ...]


def one_round(seed: int) -> collections.Counter[str]:
    """Half of the threads encode, the others change truncation, padding and how special tokens are
    encoded. Each row must be one that `tokenizers` gives with some of the settings.
    """
    rng = random.Random(seed)
    while True:
        file = any_subject(rng, rng.choice(["stages", "file", "pieces file"])).file
        assert file is not None
        file["post_processor"] = template(rng, file)
        subject = of_file("settings", file)
        if subject is not None and subject.hf is not None:
            break
    letters = subject.words
    texts = ["".join(rng.choices(letters, k=rng.choice([0, 3, 20, 150]))) for _ in range(8)]
    possible = possible_rows(subject.real, texts)
    hf = streamtok.hf.Tokenizer.from_str(subject.json)
    counts: collections.Counter[str] = collections.Counter()
    is_over = threading.Event()
    calls = [*calls_of(hf, texts), *transformers_calls(hf, subject.transformers, texts)]

    def run(call: Any) -> None:
        try:
            while time.monotonic() < stop and not is_over.is_set():
                counts[call.__name__] += 1
                try:
                    answers = call(random.Random(rng.random())) or ()
                except BaseException as error:
                    if refuses(error):
                        continue
                    raise
                for ids, mask in answers:
                    kept = tuple(id for id, one in zip(ids, mask, strict=True) if one)
                    if kept not in possible:
                        raise AssertionError(
                            f"{call.__name__}: {len(kept)} ids {kept[:8]}… of no setting\n"
                            f"  {json.dumps(texts)[:300]}"
                        )
        except BaseException:
            is_over.set()
            raise

    rng.shuffle(calls)  # rarely all of them, so that each is found out by itself
    del calls[rng.randint(1, len(calls)) :]
    changes = [truncation, padding, special]

    def changing(change: Any) -> Any:
        def called(rng: random.Random) -> None:
            change(hf, rng)

        called.__name__ = change.__name__
        return called

    work = [calls[i % len(calls)] for i in range(THREADS)]
    work += [changing(changes[i % len(changes)]) for i in range(THREADS)]
    stop = time.monotonic() + SECONDS
    together(*(functools.partial(run, call) for call in work))
    return counts


def template(rng: random.Random, file: File) -> Any:
    """What puts some ids around each text."""
    tokens = [*ids_of(file["model"])]
    before, after = (rng.choices(tokens, k=rng.choice([0, 1, 4])) for _ in range(2))
    parts: list[Any] = [{"SpecialToken": {"id": one, "type_id": 0}} for one in before]
    parts.append({"Sequence": {"id": "A", "type_id": 0}})
    parts += [{"SpecialToken": {"id": one, "type_id": 0}} for one in after]
    ids = ids_of(file["model"])
    return {
        "type": "TemplateProcessing",
        "single": parts,
        "pair": [*parts, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            one: {"id": one, "ids": [ids[one]], "tokens": [one]} for one in {*before, *after}
        },
    }


def possible_rows(real: Any, texts: list[str]) -> set[Row]:
    found = set()
    for is_text in (False, True):
        real.encode_special_tokens = is_text
        for most in (None, *LENGTHS):
            for direction in ("left", "right"):
                if most is None:
                    real.no_truncation()
                else:
                    real.enable_truncation(most, direction=direction)
                for around in (False, True):
                    for text in texts:
                        found.add(tuple(or_nothing(real.encode, text, around)))
    return found


def or_nothing(encode: Any, text: str, around: bool) -> list[int]:
    try:
        ids: list[int] = encode(text, add_special_tokens=around).ids
    except BaseException as error:
        if refuses(error):
            return []
        raise
    return ids


def refuses(error: BaseException) -> bool:
    """Whether tokenizers refuses the settings: by an exception of its own, or by a panic."""
    return type(error) is Exception or "Panic" in type(error).__name__


def calls_of(hf: Any, texts: list[str]) -> list[Any]:
    def encode(rng: random.Random) -> Any:
        made = hf.encode(rng.choice(texts), add_special_tokens=rng.random() < 0.7)
        return [(made.ids, made.attention_mask)]

    def encode_batch(rng: random.Random) -> Any:
        made = hf.encode_batch(texts, add_special_tokens=rng.random() < 0.7)
        return [(one.ids, one.attention_mask) for one in made]

    return [encode_batch, encode]


def transformers_calls(hf: Any, tokenizer: Any, texts: list[str]) -> list[Any]:
    """Those of a tokenizer of transformers, which sets what it is asked for first."""
    if tokenizer is None:
        return []
    tokenizer._tokenizer = hf

    def ask(rng: random.Random, tensors: str | None) -> Any:
        try:
            made = tokenizer(
                texts,
                add_special_tokens=rng.random() < 0.7,
                truncation=True,
                max_length=rng.choice(LENGTHS),
                padding="max_length", return_tensors=tensors, return_attention_mask=True,
            )  # fmt: skip
        except ValueError:  # rows of several lengths: another thread took padding away
            return []
        return zip(made["input_ids"], made["attention_mask"], strict=True)

    def matrices(rng: random.Random) -> Any:
        return ask(rng, "np")

    def lists(rng: random.Random) -> Any:
        return ask(rng, None)

    return [matrices, lists]


def truncation(hf: Any, rng: random.Random) -> None:
    if rng.random() < 0.3:
        hf.no_truncation()
    else:
        hf.enable_truncation(rng.choice(LENGTHS), direction=rng.choice(["left", "right"]))


def padding(hf: Any, rng: random.Random) -> None:
    if rng.random() < 0.3:
        hf.no_padding()
    else:
        hf.enable_padding(direction=rng.choice(["left", "right"]), pad_id=0)


def special(hf: Any, rng: random.Random) -> None:
    hf.encode_special_tokens = rng.random() < 0.5
