"""Random `tokenizer.json` files: streamtok, its reference and `tokenizers` must give the same ids.

    python -m tests.random_tokenizers --cases 100_000 --seed 1 --seconds 600 --save failures
    python -m tests.random_tokenizers --replay failures/12345.json

A case is a file of `tests/tokenizer_files.py` and texts for it: whole, at every cut, in bytes, at
random cuts with the state saved and loaded between them; counted, and decoded. A find is made
small and saved as JSON. What streamtok refuses is counted by its message. `tokenizers` panics on
some files and texts; they are no cases.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer

import streamtok
from streamtok.reference import tokenizer_json as reference

from .tokenizer_files import File, give_ids, random_file, random_text

MARK = "\u2581"
SYMBOLS = frozenset(reference.BYTE_SYMBOLS.values())
TEXTS = 4  # a file
MOST_CUTS = 40  # of a text that is tried at every cut
OPTIONS: dict[str, Any] = {"allowed_special": "all"}


class Difference(NamedTuple):
    kind: str  # load, encode, count, stream, decode or reference
    text: str
    expected: Any
    found: Any
    how: Any = None  # cuts


class Refused(Exception):
    """streamtok does not read this file; the argument is its message."""


class Counts(collections.Counter[str]):
    """How many files and texts; `refusals` by message, with the seed of one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: collections.Counter[str] = collections.Counter()
        self.examples: dict[str, int] = {}


def theirs(file: File) -> Tokenizer | None:
    """The tokenizer of `tokenizers`, or None if it does not take this file."""
    try:
        return Tokenizer.from_str(json.dumps(file))
    except Exception:
        return None


def expected_ids(tokenizer: Tokenizer, text: str) -> list[int] | None:
    """None: it panics."""
    try:
        return tokenizer.encode(text, add_special_tokens=False).ids
    except BaseException as error:
        if "Panic" not in type(error).__name__:  # of pyo3, which is no Exception
            raise
        return None


def ours(file: File, folder: Path) -> streamtok.Encoding:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")
    try:
        return streamtok.load(path)
    except (streamtok.VocabularyError, streamtok.PatternError) as error:
        raise Refused(str(error).replace(str(path), "FILE")) from error


def check_text(
    enc: streamtok.Encoding,
    file: File,
    tokenizer: Tokenizer,
    text: str,
    rng: random.Random,
    counts: Counts | None = None,
) -> Iterator[Difference]:
    """The differences for one text. Counts what is compared: whole texts, streams, decoded ids."""
    counts = Counts() if counts is None else counts
    ids = expected_ids(tokenizer, text)
    if ids is None:
        return
    try:
        plain = reference.encode(file, text)
        if plain != ids:
            yield Difference("reference", text, ids, plain)
    except NotImplementedError:
        pass
    found = attempt(lambda: enc.encode(text, **OPTIONS))
    counts["whole texts"] += 1
    if found != ids:
        yield Difference("encode", text, ids, found)
        return
    number = attempt(lambda: enc.count(text, **OPTIONS))
    if number != len(ids):
        yield Difference("count", text, len(ids), number)
    data = text.encode()
    ways = [(at,) for at in range(len(data) + 1)] if len(data) <= MOST_CUTS else []
    ways += [tuple(range(1, len(data)))]
    ways += [
        tuple(sorted(rng.choices(range(len(data) + 1), k=rng.randint(1, 6)))) for _ in range(4)
    ]
    for cuts in ways:
        got = attempt(lambda cuts=cuts: stream(enc, data, cuts, rng))
        counts["streams"] += 1
        if got != ids:
            yield Difference("stream", text, ids, got, cuts)
            return
    cuts = tuple(sorted(rng.choices(range(len(text) + 1), k=3)))
    got = attempt(lambda: stream(enc, text, cuts, rng))
    counts["streams"] += 1
    if got != ids:
        yield Difference("stream", text, ids, got, cuts)
    if decodes_alike(file, tokenizer, ids):
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        if ids and file["decoder"]["type"] == "BPEDecoder":  # streamtok keeps what ends a word
            last, suffix = tokenizer.id_to_token(ids[-1]), file["decoder"]["suffix"]
            decoded = decoded.removesuffix(last.replace(suffix, "")) + last.replace(suffix, " ")
        back = attempt(lambda: enc.decode(ids))
        counts["decoded"] += 1
        if back != decoded:
            yield Difference("decode", text, decoded, back)


def decodes_alike(file: File, tokenizer: Tokenizer, ids: list[int]) -> bool:
    """Whether decoding should be equal.

    It is not where there is no decoder; where added tokens have letters that stand for bytes in
    ByteLevel: tokenizers decodes them as these bytes, and streamtok decodes an added token to
    its content; and where they are normalized: tokenizers decodes them to the normalized content. A
    decoder that makes spaces of the marks for them is compared where all spaces, and nothing else,
    become such marks.
    """
    if file["decoder"] is None:  # tokenizers puts spaces between tokens
        return False
    kind = file["decoder"]["type"]
    if kind == "BPEDecoder":  # it leaves <0x41> as it is
        names = [tokenizer.id_to_token(id) for id in ids]
        return not any(re.fullmatch("<0x..>", name) for name in names)
    added = [token["content"] for token in file["added_tokens"] if token["id"] in ids]
    if any(tokenizer.id_to_token(tokenizer.token_to_id(content)) != content for content in added):
        return False
    if kind == "ByteLevel":
        return not any(c in SYMBOLS and c > "\x7f" for content in added for c in content)
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    prepend = {"type": "Prepend", "prepend": MARK}
    usual = (replace, {"type": "Sequence", "normalizers": [prepend, replace]})
    vocab = file["model"]["vocab"]
    is_folded = MARK in vocab and not any(" " in token for token in vocab)
    is_usual = file["normalizer"] in usual and file["pre_tokenizer"] is None
    return is_usual and is_folded and not any(MARK in content for content in added)


def attempt(action: Any) -> Any:
    """The result, or the exception as text: no text may be refused, but streams by their kind."""
    try:
        return action()
    except streamtok.UnsupportedStreamError as error:
        raise Refused(f"streams: {error}") from error
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def stream(
    enc: streamtok.Encoding, data: Any, cuts: tuple[int, ...], rng: random.Random
) -> list[int]:
    """The ids of a stream cut at `cuts`; now and then another stream goes on from its state."""
    encoder = enc.stream_encoder(**OPTIONS)
    ids: list[int] = []
    bounds = [0, *cuts, len(data)]
    for start, end in pairwise(bounds):
        ids += encoder.encode(data[start:end])
        if rng.random() < 0.1:
            state = encoder.getstate()
            encoder = enc.stream_encoder(**OPTIONS)
            encoder.setstate(state)
    return ids + encoder.flush()


def check_file(
    file: File, texts: list[str], folder: Path, seed: int, counts: Counts
) -> Difference | None:
    """The first difference for any of `texts`. Raises Refused."""
    tokenizer = theirs(file)
    if tokenizer is None:
        counts["not taken by tokenizers"] += 1
        return None
    try:
        enc = ours(file, folder)
    except Refused:
        raise
    except Exception as error:
        return Difference("load", "", "an encoding or VocabularyError", repr(error))
    rng = random.Random(seed)
    for text in texts:
        counts["texts"] += 1
        for difference in check_text(enc, file, tokenizer, text, rng, counts):
            return difference
    counts["equal"] += 1
    return None


def case(seed: int) -> tuple[File, list[str]]:
    rng = random.Random(seed)
    file = random_file(rng)
    return file, [random_text(rng, file) for _ in range(TEXTS)]


def run(
    seeds: Iterator[int], folder: Path, counts: Counts
) -> Iterator[tuple[int, File, Difference]]:
    """Check the case of each seed; what is refused and what is equal goes into `counts`."""
    for seed in seeds:
        file, texts = case(seed)
        counts["files"] += 1
        try:
            difference = check_file(file, texts, folder, seed, counts)
        except Refused as refused:
            counts["refused"] += 1
            shape = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", str(refused).removeprefix("FILE: "))
            shape = re.sub(r"\d+", "N", re.sub(r"(bytes are .*):.*", r"\1", shape))[:110]
            counts.refusals[shape] += 1
            counts.examples.setdefault(shape, seed)
            continue
        if difference is not None:
            counts["different"] += 1
            yield seed, file, difference


# Making a find small


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
            differences = check_text(enc, file, tokenizer, text, random.Random(1))
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


# The command


def save(folder: Path, seed: int, file: File, difference: Difference) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{seed}.json"
    path.write_text(
        json.dumps({"file": file, "difference": difference._asdict()}, indent=1), "utf-8"
    )
    return path


def describe(file: File, difference: Difference) -> str:
    names = {id: token for token, id in file["model"]["vocab"].items()}
    names |= {token["id"]: token["content"] for token in file["added_tokens"]}

    def spelled(value: Any) -> str:
        return repr([names.get(id, id) for id in value]) if isinstance(value, list) else repr(value)

    added = [
        " ".join([ascii(t["content"]), *(k for k, v in t.items() if v is True)])
        for t in file["added_tokens"]
    ]
    model = {k: v for k, v in file["model"].items() if k not in ("vocab", "merges", "type") and v}
    return (
        f"{difference.kind}: text {difference.text!a} cuts {difference.how}\n"
        f"  normalizer {json.dumps(file['normalizer'])}\n"
        f"  pre_tokenizer {json.dumps(file['pre_tokenizer'])}\n"
        f"  added {'; '.join(added)}\n  model {model} merges {file['model']['merges'][:12]}\n"
        f"  expected {spelled(difference.expected)}\n  found    {spelled(difference.found)}"
    )


def report(counts: Counts, seconds: float) -> str:
    lines = [", ".join(f"{key} {number}" for key, number in counts.items()) + f"; {seconds:.0f} s"]
    for message, number in counts.refusals.most_common(60):
        lines.append(f"{number:7} refused, such as seed {counts.examples[message]}: {message}")
    return "\n".join(lines)


def replay(path: Path, folder: Path) -> int:
    """0 if the saved case is equal now."""
    saved = json.loads(path.read_text("utf-8"))
    try:
        found = check_file(saved["file"], [saved["difference"]["text"]], folder, 1, Counts())
    except Refused as refused:
        print(f"refused: {refused}")
        return 0
    print(describe(saved["file"], found) if found else "equal")
    return 1 if found else 0


def main() -> int:
    number = lambda text: int(text.replace("_", ""))  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", type=number, default=1000)
    parser.add_argument("--seed", type=number, default=1, help="of the first case; the next is +1")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--finds", type=int, default=10, help="stop after so many")
    parser.add_argument("--save", type=Path, default=Path("random_tokenizers_found"))
    parser.add_argument("--but", nargs="+", default=[], help="kinds of finds to pass over")
    parser.add_argument("--replay", type=Path, nargs="+")
    options = parser.parse_args()
    os.environ["STREAMTOK_CACHE"] = "off"  # a cache of loaded files must not grow with each
    os.environ.setdefault("RUST_BACKTRACE", "0")
    counts, start = Counts(), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.replay:
            return max(replay(path, folder) for path in options.replay)
        end = start + options.seconds
        seeds = range(options.seed, options.seed + options.cases)
        in_time = (seed for seed in seeds if time.monotonic() < end)
        for seed, file, difference in run(in_time, folder, counts):
            if difference.kind in options.but:
                counts[f"passed over: {difference.kind}"] += 1
                counts["different"] -= 1
                continue
            file, difference = shrink(file, difference, folder)
            print(f"seed {seed}: {save(options.save, seed, file, difference)}")
            print(describe(file, difference), flush=True)
            if counts["different"] >= options.finds:
                break
    print(report(counts, time.monotonic() - start))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
