"""A find is a file and a text whose ids differ: it is made small and told."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...tokenizer_files import File, give_ids, ids_of
from ..steps import shrunk
from .checks import Difference, check_file_text, check_written, ours, theirs

EVERYWHERE = 1000  # bytes: a text of a find is cut everywhere
STEPS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers"}
FLAGS = ("single_word", "lstrip", "rstrip", "special")
Part = tuple[str, Any]


def parts_of(file: File, text: str) -> list[Part]:
    """What a find may do without: (what it is of, which of these)."""
    model, added = file["model"], file["added_tokens"]
    sizes = {"text": len(text), "added_tokens": len(added)}
    sizes |= {key: len(file[key].get(inner, "1")) for key, inner in STEPS.items() if file[key]}
    rows = "merges" if model["type"] == "BPE" else "vocab"
    sizes[rows] = len(model[rows])
    parts: list[Part] = [(name, at) for name, size in sizes.items() for at in range(size)]
    parts += [(flag, at) for at, token in enumerate(added) for flag in FLAGS if token[flag]]
    settings = ("ignore_merges", "fuse_unk", "byte_fallback") if rows == "merges" else ()
    return parts + [("model", name) for name in settings if model[name]]


def with_parts(file: File, text: str, kept: set[Part]) -> tuple[File, str]:
    """The file and the text that have these parts of them."""

    def some(name: str, of: Sequence[Any]) -> list[Any]:
        return [one for at, one in enumerate(of) if (name, at) in kept]

    copy = json.loads(json.dumps(file))
    for at, token in enumerate(copy["added_tokens"]):
        token |= {flag: token[flag] and (flag, at) in kept for flag in FLAGS}
    copy["added_tokens"] = some("added_tokens", copy["added_tokens"])
    for key, inner in STEPS.items():
        step = copy[key] or {}
        if inner in step:
            step[inner] = some(key, step[inner])
        copy[key] = step if step.get(inner, some(key, "1")) else None
    model = copy["model"]
    if model["type"] == "BPE":
        model["merges"] = some("merges", model["merges"])
        for name in ("ignore_merges", "fuse_unk", "byte_fallback"):
            model[name] = ("model", name) in kept
    elif model["type"] == "Unigram":
        model["vocab"] = some("vocab", model["vocab"])
    else:
        model["vocab"] = dict(some("vocab", [*model["vocab"].items()]))
    give_ids(copy)
    return copy, "".join(some("text", text))


def shrink(
    file: File, found: Difference, folder: Path, seconds: float = 10
) -> tuple[File, Difference]:
    """A smaller file and text with a difference of the same kind, as far as the time goes."""
    parts = parts_of(file, found.text)
    smallest = file, found

    def fails(some: Sequence[int]) -> bool:
        nonlocal smallest
        less, text = with_parts(file, found.text, {parts[number] for number in some})
        tokenizer = theirs(less)
        if tokenizer is None:
            return False
        try:
            enc = ours(less, folder)
            differences = itertools.chain(
                check_file_text(enc, less, tokenizer, text, random.Random(1), short=EVERYWHERE),
                check_written(enc, tokenizer, [text], folder),
            )
            again = next((d for d in differences if d.kind == found.kind), None)
        except Exception:  # the smaller file is wrong in another way, or refused
            return False
        if again is not None:
            smallest = less, again
        return again is not None

    if found.kind != "load":
        shrunk(range(len(parts)), fails, seconds)
    return smallest


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
