"""Real vocabulary files against their own libraries: ids, streams, decoding, speed.

    python -m tests.long.real_vocabularies FOLDER [NAME ...] [--texts FILE ...] [--bytes N]

Below FOLDER, each `tokenizer.json` (tokenizers), `tekken.json` (mistral_common), `.model`
(sentencepiece) and `.tiktoken` (tiktoken) is read by streamtok and by its library, in a process of
its own. The texts are those of `tests/oracles.py`, each added token in several surroundings, the
files that are given, and made ones; streams are cut at random. Ratios are streamtok's speed over
the library's, medians of interleaved runs of processor time. The exit code is 1 if anything
differs. A file that streamtok does not read is reported with its message.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import streamtok
from benchmarks.corpus import NAMES, generated

from ..conftest import chunked, stream_ids
from ..oracles import NASTY, PLAIN, assert_same
from ..tokenizer_files import ODD

ROUNDS = 5
ADDED = 300  # tokens of a file, at most
SHORT = 5_000  # characters of a long text that are compared by themselves


class Library:
    """The library that a kind of file belongs to."""

    def __init__(self, path: Path):
        self.path = path
        self.kind = "tiktoken" if path.suffix == ".tiktoken" else path.name
        self.kind = "sentencepiece" if path.suffix == ".model" else self.kind

    def load(self) -> Any:
        if self.kind == "tokenizer.json":
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(self.path))
            tokenizer.no_truncation()  # these two are kept, not applied
            tokenizer.no_padding()
            return tokenizer
        if self.kind == "sentencepiece":
            from sentencepiece import SentencePieceProcessor

            return SentencePieceProcessor(model_file=str(self.path))
        if self.kind == "tekken.json":
            from mistral_common.tokens.tokenizers.tekken import Tekkenizer

            return Tekkenizer.from_file(str(self.path))
        import tiktoken
        import tiktoken.load

        enc = streamtok.load(self.path)
        ranks = tiktoken.load.load_tiktoken_bpe(str(self.path))
        return tiktoken.Encoding(
            enc.name,
            pat_str=enc._pat_str,
            mergeable_ranks=ranks,
            special_tokens=enc._special_tokens,
        )

    def encode(self, loaded: Any) -> Callable[[str], list[int]]:
        if self.kind == "tokenizer.json":
            return lambda text: loaded.encode_batch_fast([text], add_special_tokens=False)[0].ids
        if self.kind == "sentencepiece":
            return loaded.encode
        if self.kind == "tekken.json":
            return lambda text: loaded.encode(text, bos=False, eos=False)
        return lambda text: loaded.encode(text, allowed_special="all")

    def decode(self, loaded: Any) -> Callable[[list[int]], str] | None:
        """None: what the library decodes has no simple relation to the text."""
        if self.kind == "tokenizer.json":
            return lambda ids: loaded.decode(ids, skip_special_tokens=False)
        return loaded.decode if self.kind == "tiktoken" else None

    def added(self, loaded: Any) -> list[str]:
        if self.kind == "tokenizer.json":
            return [token.content for token in loaded.get_added_tokens_decoder().values()]
        return sorted(loaded.special_tokens_set) if self.kind == "tiktoken" else []

    @property
    def finds_special_tokens(self) -> bool:
        return self.kind in ("tokenizer.json", "tiktoken")


def short_texts() -> list[str]:
    rng = random.Random(5)
    mixed = ["".join(rng.choices([*ODD, " ", "a", "b", "e", "\n"], k=12)) for _ in range(200)]
    marks = ["a" + "\u0301" * 40 + "b", "\u1100\u1161\u11a8" * 9, "e\u0323\u0301" * 20]
    return [*PLAIN, *filter(None, NASTY), *ODD, *mixed, *marks, " " * 70, "\n" * 70]


def texts_with(added: list[str]) -> Iterator[str]:
    """Each added token, whole and cut off, where blanks or letters or others are beside it."""
    rng = random.Random(6)
    chosen = added if len(added) <= ADDED else rng.sample(added, ADDED)
    for token in chosen:
        other = rng.choice(chosen)
        yield f"a{token}b {token} \n{token}{token[:-1]}"
        yield f"{token}  {token[: len(token) // 2]}{other}{token}"
        yield f"\u65e5{token}1 {token.upper()}é{other[1:]}"


def long_texts(files: list[Path], size: int) -> Iterator[tuple[str, str]]:
    for file in files:
        with file.open("rb") as stream:
            yield file.name, stream.read(size).decode("utf-8", "ignore")
    for name in NAMES if not files else ():
        yield name, generated(name)[:size].decode("utf-8", "ignore")


def compare(path: Path, files: list[Path], size: int) -> dict[str, Any]:
    """What differs between the libraries, and how fast they are."""
    library = Library(path)
    try:
        enc = streamtok.load(path)
    except (streamtok.VocabularyError, streamtok.PatternError) as error:
        return {"refused": str(error).replace(str(path), path.name)}
    theirs = library.load()
    encode, decode = library.encode(theirs), library.decode(theirs)
    allowed = "all" if library.finds_special_tokens else frozenset()
    found: list[dict[str, str]] = []
    compared = 0

    def check(text: str) -> None:
        nonlocal compared
        compared += len(text.encode())
        try:
            assert_same(enc, encode, [text], allowed_special=allowed, round_trip=False)
            if decode is not None:
                ids = encode(text)
                assert enc.decode(ids) == decode(ids), "the decoded texts differ"
        except Exception as error:
            found.append({"text": ascii(text[:400]), "error": repr(error)[:300]})

    for text in [*short_texts(), *texts_with(library.added(theirs))]:
        check(text)
    speeds: dict[str, list[float]] = {"whole": [], "chunks": []}
    for _, text in long_texts(files, size):
        for way, ratio in speed(enc, encode, text, allowed).items():
            speeds[way].append(ratio)
        check(text[:SHORT])
        check(text)
    return {"found": found, "bytes": compared, "n_vocab": enc.n_vocab, "speeds": speeds}


def speed(
    enc: streamtok.Encoding, encode: Callable[[str], list[int]], text: str, allowed: Any
) -> dict[str, float]:
    """How many times as fast as the library: whole pieces of the text, and chunks of 64 KiB.

    Each piece is new to both, so that what is kept of earlier ones does not count more than in use.
    """
    options = {"allowed_special": allowed, "disallowed_special": ()}
    size = len(text) // (2 * ROUNDS) + 1
    ratios: dict[str, list[float]] = {"whole": [], "chunks": []}
    for number, at in enumerate(range(0, len(text), size)):
        piece = text[at : at + size]
        chunks = chunked(piece.encode(), 1 << 16)
        way = ("whole", "chunks")[number % 2]
        start = time.process_time()
        encode(piece)
        middle = time.process_time()
        if way == "whole":
            enc.encode(piece, **options)
        else:
            stream_ids(enc.stream_encoder(**options), chunks)
        ratios[way].append((middle - start) / max(time.process_time() - middle, 1e-6))
    return {way: statistics.median(values) for way, values in ratios.items() if values}


def vocabularies(folder: Path, names: list[str]) -> Iterator[tuple[str, Path]]:
    patterns = ("tokenizer.json", "tekken.json", "*.model", "*.tiktoken")
    for path in sorted(path for pattern in patterns for path in folder.rglob(pattern)):
        name = path.parent.name if path.name == "tokenizer.json" else path.stem
        if not names or name in names:
            yield name, path


def examine(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """`compare` in a process of its own; {"refused": message} or {"failed": message}."""
    command = [sys.executable, "-m", "tests.long.real_vocabularies", str(path), "--worker"]
    command += [f"--bytes={options.bytes}"]
    command += ["--texts", *map(str, options.texts)] if options.texts else []
    environment = os.environ | {"TOKENIZERS_PARALLELISM": "false", "STREAMTOK_CACHE": "off"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"failed": said[-1]}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def row(name: str, result: dict[str, Any]) -> str:
    if "found" not in result:
        return f"{name}: {result.get('refused') or result['failed']}"
    ratios = ["-".join(f"{f(v):.1f}" for f in (min, max)) for v in result["speeds"].values() if v]
    same = "equal" if not result["found"] else f"{len(result['found'])} differences"
    size = f"{result['bytes'] / 1e6:.1f} MB"
    return " | ".join([name, f"{result['n_vocab']:,}", *ratios, size, same])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="only these (folders of tokenizer.json)")
    parser.add_argument("--texts", type=Path, nargs="+", default=[])
    parser.add_argument("--bytes", type=int, default=300_000, help="of each of the texts")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(compare(options.folder, options.texts, options.bytes)))
        return 0
    print("file | ids | speed: whole | 64 KiB chunks | compared | result", flush=True)
    code = 0
    for name, path in vocabularies(options.folder, options.names):
        result = examine(path, options)
        print(row(name, result), flush=True)
        for find in result.get("found", [])[:5]:
            print(f"    {json.dumps(find, ensure_ascii=True)}", file=sys.stderr, flush=True)
        code |= bool(result.get("found")) or "failed" in result
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
