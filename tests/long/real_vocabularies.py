"""Real vocabulary files against their own libraries: ids, streams, decoding.

    python -m tests.long.real_vocabularies FOLDER [NAME ...] [--texts FILE ...] [--bytes N]

Below FOLDER, each `tokenizer.json` (tokenizers), `tekken.json` (mistral_common), `.model`
(sentencepiece) and `.tiktoken` (tiktoken) is read by streamtok and by its library. The texts are
those of `tests/oracles.py`, each added token in several surroundings, the files that are given, and
made ones; streams are cut at random. A `tokenizer.json` is asked every call of `streamtok.hf`, too,
which must encode by itself. A `.gguf` is compared with the texts (`.inp`) and ids (`.out`) beside
it, if they are there, as in the folder `models` of llama.cpp, which llama-cpp-python's source
distribution has. The exit code is 1 if anything differs. A file that streamtok does not read is
reported with its message.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer

import streamtok
import streamtok.hf
from benchmarks.corpus import NAMES, generated

from ..hf import shapes
from ..oracles import NASTY, PLAIN, assert_same
from ..tokenizer_files import ODD

ADDED = 300  # tokens of a file, at most
SHORT = 5_000  # characters of a long text that are compared by themselves


class Library(NamedTuple):
    """What the library that a file belongs to does with it."""

    encode: Callable[[str], list[int]]
    decode: Callable[[list[int]], str] | None  # None: it has no simple relation to the text
    added: list[str]  # tokens that it finds in texts


def library_of(path: Path) -> Library:
    if path.name == "tokenizer.json":
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_truncation()  # these two are kept, not applied
        tokenizer.no_padding()
        return Library(
            lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
            lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
            [token.content for token in tokenizer.get_added_tokens_decoder().values()],
        )
    if path.suffix == ".model":
        from sentencepiece import SentencePieceProcessor

        return Library(SentencePieceProcessor(model_file=str(path)).encode, None, [])
    if path.name == "tekken.json":
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        tekken = Tekkenizer.from_file(str(path))
        return Library(lambda text: tekken.encode(text, bos=False, eos=False), None, [])
    import tiktoken
    import tiktoken.load

    enc = streamtok.load(path)
    twin = tiktoken.Encoding(
        enc.name,
        pat_str=enc._pat_str,
        mergeable_ranks=tiktoken.load.load_tiktoken_bpe(str(path)),
        special_tokens=enc._special_tokens,
    )
    added = sorted(twin.special_tokens_set)
    return Library(lambda text: twin.encode(text, allowed_special="all"), twin.decode, added)


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


def long_texts(files: list[Path], size: int) -> Iterator[str]:
    for file in files:
        with file.open("rb") as stream:
            yield stream.read(size).decode("utf-8", "ignore")
    for name in NAMES if not files else ():
        yield generated(name)[:size].decode("utf-8", "ignore")


def of_llama_cpp(path: Path) -> Iterator[tuple[str, list[int]]]:
    """Texts with their ids."""
    given = path.with_name(path.name + ".inp")
    if not given.exists():
        return
    with given.open(encoding="utf-8", newline="") as file:
        texts = file.read().split("\n__ggml_vocab_test__\n")
    lines = path.with_name(path.name + ".out").read_text("utf-8").splitlines()
    for text, line in zip(texts, lines, strict=False):
        yield text, [int(id) for id in line.split()]


def differences(path: Path, files: list[Path], size: int) -> Iterator[str]:
    if path.suffix == ".gguf":
        enc = streamtok.load(path)
        for text, ids in of_llama_cpp(path):
            try:
                assert_same(enc, lambda _, ids=ids: ids, [text], round_trip=False)
            except Exception as error:
                yield f"{text!a}: {repr(error)[:300]}"
        return
    library, enc = library_of(path), streamtok.load(path)
    if path.name == "tokenizer.json":
        hf = streamtok.hf.Tokenizer.from_file(str(path))
        if hf.engine != "streamtok":
            yield f"streamtok.hf does not encode: {hf.reason}"
        yield from shapes.differences(hf, Tokenizer.from_file(str(path)), shapes.TEXTS)[1]
    allowed = "all" if library.added else frozenset()
    long = [part for text in long_texts(files, size) for part in (text[:SHORT], text)]
    for text in [*short_texts(), *texts_with(library.added), *long]:
        try:
            assert_same(enc, library.encode, [text], allowed_special=allowed, round_trip=False)
            if library.decode is not None:
                ids = library.encode(text)
                assert enc.decode(ids) == library.decode(ids), "the decoded texts differ"
        except Exception as error:
            yield f"{text[:400]!a}: {repr(error)[:300]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="only these (folders of tokenizer.json)")
    parser.add_argument("--texts", type=Path, nargs="+", default=[])
    parser.add_argument("--bytes", type=int, default=300_000, help="of each of the texts")
    options = parser.parse_args()
    os.environ["STREAMTOK_CACHE"] = "off"
    code = 0
    patterns = ("tokenizer.json", "tekken.json", "*.model", "*.tiktoken", "*.gguf")
    for path in sorted(path for pattern in patterns for path in options.folder.rglob(pattern)):
        name = path.parent.name if path.name == "tokenizer.json" else path.stem
        if options.names and name not in options.names:
            continue
        try:
            found = list(differences(path, options.texts, options.bytes))
        except (streamtok.VocabularyError, streamtok.PatternError) as error:
            print(f"{name}: {error}", flush=True)
            continue
        print(f"{name}: {len(found) or 'no'} differences", *found[:5], sep="\n    ", flush=True)
        code |= bool(found)
    return code


if __name__ == "__main__":
    sys.exit(main())
