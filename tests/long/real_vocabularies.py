"""Real vocabulary files against their own libraries: ids, streams, decoding, speed.

    python -m tests.long.real_vocabularies FOLDER [NAME ...] [--texts FILE ...] [--bytes N]

Below FOLDER, each `tokenizer.json` (tokenizers), `tekken.json` (mistral_common), `.model`
(sentencepiece) and `.tiktoken` (tiktoken) is read by streamtok and by its library, in a process of
its own. The texts are those of `tests/nasty.py`, each added token in several surroundings, the
files that are given, and made ones. Streams are cut everywhere (short texts), at random and into
bytes. Ratios are streamtok's speed over the library's, medians of interleaved runs of processor
time. The exit code is 1 if anything differs. A file that streamtok does not read is reported with
its message.
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

ROUNDS = 5
BYTE_BY_BYTE = 20_000  # of a text, at most
ADDED = 300  # tokens of a file, at most
EVERYWHERE = 64  # bytes of a text that is cut at every place


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

        import streamtok

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


# Texts


def short_texts() -> list[str]:
    from ..nasty import TEXTS
    from ..oracles import PLAIN
    from ..tokenizer_files import ODD

    nasty = [text.decode() for text in TEXTS if text.decode("utf-8", "ignore").encode() == text]
    rng = random.Random(5)
    mixed = ["".join(rng.choices([*ODD, " ", "a", "b", "e", "\n"], k=12)) for _ in range(200)]
    marks = ["a" + "\u0301" * 40 + "b", "\u1100\u1161\u11a8" * 9, "e\u0323\u0301" * 20]
    return [*PLAIN, *nasty, *ODD, *mixed, *marks, " " * 70, "\n" * 70]


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
    from benchmarks.corpus import NAMES, generated

    for file in files:
        with file.open("rb") as stream:
            yield file.name, stream.read(size).decode("utf-8", "ignore")
    for name in NAMES if not files else ():
        yield name, generated(name)[:size].decode("utf-8", "ignore")


class Comparison:
    """All texts through both libraries; `found` has what differs."""

    def __init__(self, library: Library):
        import streamtok

        self.theirs = library.load()
        self.enc = streamtok.load(library.path)
        self.encode, self.decode = library.encode(self.theirs), library.decode(self.theirs)
        self.options: dict[str, Any] = {"disallowed_special": ()}
        if library.finds_special_tokens:
            self.options["allowed_special"] = "all"
        self.found: list[dict[str, Any]] = []
        self.bytes = self.streams = self.decoded = 0
        self.rng = random.Random(7)

    def note(self, kind: str, text: str, expected: Any, found: Any, how: Any = None) -> None:
        if isinstance(expected, list) and isinstance(found, list):  # ids: what is around the place
            at = next(
                (i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b),
                min(len(expected), len(found)),
            )
            expected, found = expected[at : at + 6], found[at : at + 6]
            text = text if len(text) < 400 else f"... token {at}"
        self.found.append(
            {"kind": kind, "text": ascii(text[:400]), "how": how}
            | {"expected": ascii(expected)[:300], "found": ascii(found)[:300]}
        )

    def check(self, text: str) -> None:
        expected = self.encode(text)
        self.bytes += len(text.encode())
        try:
            ids = self.enc.encode(text, **self.options)
            if ids != expected:
                return self.note("encode", text, expected, ids)
            if self.enc.count(text, **self.options) != len(ids):
                self.note("count", text, len(ids), self.enc.count(text, **self.options))
            self.check_streams(text, ids)
            if self.decode is not None:
                self.check_decoding(ids)
        except Exception as error:
            self.note("error", text, "ids", repr(error))

    def check_streams(self, text: str, expected: list[int]) -> None:
        data = text.encode()
        ways: list[Any] = [(at,) for at in range(1, len(data))] if len(data) <= EVERYWHERE else []
        for mean in (3, 40) if len(data) < 2000 else (100, 5000):
            points = self.rng.choices(range(len(data) + 1), k=len(data) // mean + 1)
            ways.append(sorted(points))
        for cuts in ways:
            ids = self.stream(
                [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
            )
            if ids != expected:
                return self.note("stream", text, expected, ids, str(cuts)[:80])
        if len(data) <= BYTE_BY_BYTE:
            ids = self.stream([bytes([byte]) for byte in data])
            if ids != expected:
                self.note("stream", text, expected, ids, "bytes")

    def stream(self, chunks: list[bytes]) -> list[int]:
        encoder = self.enc.stream_encoder(**self.options)
        ids: list[int] = []
        for chunk in chunks:
            ids += encoder.encode(chunk)
        self.streams += 1
        return ids + encoder.flush()

    def check_decoding(self, ids: list[int]) -> None:
        assert self.decode is not None
        self.decoded += 1
        text = self.decode(ids)
        if self.enc.decode(ids) != text:
            self.note("decode", text, text, self.enc.decode(ids))


def compare(library: Library, files: list[Path], size: int) -> dict[str, Any]:
    both = Comparison(library)
    for text in short_texts():
        both.check(text)
    for text in texts_with(library.added(both.theirs)):
        both.check(text)
    speeds: dict[str, list[float]] = {"whole": [], "chunks": []}
    for name, text in long_texts(files, size):
        before = len(both.found)
        for key, value in speed(both, text).items():
            speeds[key].append(value)
        both.check(text[: BYTE_BY_BYTE // 4])
        both.check(text)
        for find in both.found[before:]:
            find["file"] = name
    return {
        "found": both.found,
        "bytes": both.bytes,
        "streams": both.streams,
        "decoded": both.decoded,
        "n_vocab": both.enc.n_vocab,
        "speeds": {key: [round(value, 2) for value in values] for key, values in speeds.items()},
    }


def speed(both: Comparison, text: str) -> dict[str, float]:
    """How many times as fast as the library: whole pieces of the text, and chunks of 64 KiB.

    Each piece is new to both, so that what is kept of earlier ones does not count more than in use.
    """
    size = len(text) // (2 * ROUNDS) + 1
    ratios: dict[str, list[float]] = {"whole": [], "chunks": []}
    for number, at in enumerate(range(0, len(text), size)):
        piece = text[at : at + size]
        data = piece.encode()
        chunks = [data[at : at + (1 << 16)] for at in range(0, len(data), 1 << 16)]
        key = ("whole", "chunks")[number % 2]
        start = time.process_time()
        both.encode(piece)
        middle = time.process_time()
        try:
            both.enc.encode(piece, **both.options) if key == "whole" else both.stream(chunks)
        except Exception:
            continue  # `check` notes it
        ratios[key].append((middle - start) / max(time.process_time() - middle, 1e-6))
    return {key: statistics.median(values) for key, values in ratios.items() if values}


# The command


def vocabularies(folder: Path, names: list[str]) -> Iterator[tuple[str, Path]]:
    patterns = ("tokenizer.json", "tekken.json", "*.model", "*.tiktoken")
    for path in sorted(path for pattern in patterns for path in folder.rglob(pattern)):
        name = path.parent.name if path.name == "tokenizer.json" else path.stem
        if not names or name in names:
            yield name, path


def examine(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What a process of its own finds; {"refused": message} or {"failed": message}."""
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


def work(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    import streamtok

    try:
        return compare(Library(path), options.texts, options.bytes)
    except (streamtok.VocabularyError, streamtok.PatternError) as error:
        return {"refused": str(error).replace(str(path), path.name)}


def row(name: str, result: dict[str, Any]) -> str:
    if "found" not in result:
        return f"{name}: {result.get('refused') or result['failed']}"
    ratios = ["-".join(f"{f(v):.1f}" for f in (min, max)) for v in result["speeds"].values() if v]
    values = [
        name, f"{result['n_vocab']:,}".replace(",", " "), *ratios,
        f"{result['bytes'] / 1e6:.1f} MB, {result['streams']} streams",
        "equal" if not result["found"] else f"{len(result['found'])} differences",
    ]  # fmt: skip
    return " | ".join(values)


HEAD = "file | ids | speed: whole | 64 KiB chunks | compared | result"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="only these (folders of tokenizer.json)")
    parser.add_argument("--texts", type=Path, nargs="+", default=[])
    parser.add_argument("--bytes", type=lambda text: int(text.replace("_", "")), default=300_000)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.folder, options)))
        return 0
    print(HEAD, flush=True)
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
