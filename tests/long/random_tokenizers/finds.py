"""A find is a file and a text whose ids differ: it is made small and told."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...tokenizer_files import File, give_ids, ids_of
from .checks import (
    Difference,
    Refused,
    check_text,
    check_written,
    ours,
    theirs,
)

EVERYWHERE = 1000  # bytes: a text of a find is cut everywhere


def smaller_files(file: File) -> Iterator[File]:
    """Files with one thing less."""

    def without(**parts: Any) -> File:
        copy = json.loads(json.dumps({**file, **parts}))
        give_ids(copy)
        return copy

    added = file["added_tokens"]
    for at, token in enumerate(added):
        yield without(added_tokens=added[:at] + added[at + 1 :])
        for flag in ("single_word", "lstrip", "rstrip", "special"):
            if token[flag]:
                yield without(added_tokens=[*added[:at], {**token, flag: False}, *added[at + 1 :]])
    for key, inner in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
        step = file[key]
        if step is not None:
            yield without(**{key: None})
            for at in range(len(step.get(inner, []))):
                yield without(**{key: step[inner][at]})
                yield without(**{key: {**step, inner: step[inner][:at] + step[inner][at + 1 :]}})
    model = file["model"]
    if model["type"] != "BPE":
        rows = list(model["vocab"]) if model["type"] == "Unigram" else list(model["vocab"].items())
        for count in (len(rows) // 2, len(rows) // 4, 2, 1):
            for at in range(0, len(rows) * bool(count), max(1, count)):
                fewer = rows[:at] + rows[at + count :]
                vocab: Any = fewer if model["type"] == "Unigram" else dict(fewer)
                yield without(model={**model, "vocab": vocab})
        return
    half = len(model["merges"]) // 2
    for merges in (model["merges"][:half], model["merges"][half:], model["merges"][1:]):
        if len(merges) < len(model["merges"]):
            yield without(model={**model, "merges": merges})
    for key in ("ignore_merges", "fuse_unk", "byte_fallback"):
        if model[key]:
            yield without(model={**model, key: False})


def smaller_texts(text: str) -> Iterator[str]:
    for size in (len(text) // 2, len(text) // 4, 2, 1):
        for at in range(0, len(text), max(1, size)):
            if size:
                yield text[:at] + text[at + size :]


def shrink(
    file: File, found: Difference, folder: Path, seconds: float = 10
) -> tuple[File, Difference]:
    """A smaller file and text with a difference of the same kind, as far as the time goes."""
    end = time.monotonic() + seconds

    def still(file: File, text: str) -> Difference | None:
        tokenizer = theirs(file)
        try:
            enc = ours(file, folder) if tokenizer else None
        except Exception:
            return None
        if tokenizer is None or enc is None:
            return None
        try:
            differences = itertools.chain(
                check_text(enc, file, tokenizer, text, random.Random(1), short=EVERYWHERE),
                check_written(enc, tokenizer, [text], folder),
            )
            return next((d for d in differences if d.kind == found.kind), None)
        except Refused:
            return None

    better = found.kind != "load"
    while better and time.monotonic() < end:
        better = False
        for candidate, text in (
            *((file, text) for text in smaller_texts(found.text)),
            *((less, found.text) for less in smaller_files(file)),
        ):
            difference = still(candidate, text)
            if difference is not None:
                file, found, better = candidate, difference, True
                break
            if time.monotonic() > end:
                break
    return file, found


def describe(file: File, difference: Difference) -> str:
    names = {id: token for token, id in ids_of(file["model"]).items()}
    names |= {token["id"]: token["content"] for token in file["added_tokens"]}

    def spelled(value: Any) -> str:
        """Its ids as pieces; offsets and other rows as they are."""
        if not isinstance(value, list):
            return repr(value)
        return repr([names.get(item, item) if isinstance(item, int) else item for item in value])

    added = [
        " ".join([ascii(t["content"]), *(k for k, v in t.items() if v is True)])
        for t in file["added_tokens"]
    ]
    model = {k: v for k, v in file["model"].items() if k not in ("vocab", "merges", "type") and v}
    return (
        f"{difference.kind}: text {difference.text!a} cuts {difference.how}\n"
        f"  normalizer {json.dumps(file['normalizer'])}\n"
        f"  pre_tokenizer {json.dumps(file['pre_tokenizer'])}\n"
        f"  decoder {json.dumps(file['decoder'])}\n  added {'; '.join(added)}\n"
        f"  model {model} merges {file['model'].get('merges', [])[:12]}\n"
        f"  expected {spelled(difference.expected)}\n  found    {spelled(difference.found)}"
    )
