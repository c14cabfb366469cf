"""The families of models, each as an encoding; most are also a tokenizer.json."""

from __future__ import annotations

import json
import random

import streamtok
from streamtok.formats.huggingface import read_huggingface
from streamtok.formats.json_value import JsonValue, parse_json
from streamtok.formats.sentencepiece import read_sentencepiece

from ...conftest import PACKED, encoding_of
from ...tokenizer_files import (
    ALPHABETS,
    BEHAVIORS,
    BYTE_SYMBOLS,
    PATTERNS,
    File,
    byte_level,
    file_of,
    ids_of,
    metaspace,
    random_decoder,
    random_file,
    random_model,
    random_normalizer,
    random_piece_file,
    random_pieces,
    split,
    with_added_tokens,
)
from ..states import encodings
from ..states.encodings import Subject, made

FAMILIES = {
    "stages": 40, "file": 14, "pieces file": 14, "sentencepiece": 10, "bundled": 20,
    "random": 8, "merges": 3, "long": 2, "spaces": 2, "added": 2, "rewriting": 4, "pieces": 4,
}  # fmt: skip
# What cuts text into many pieces, so that what stages add to each is much.
CUTS = [r"a", r"[\s\S]", r"[ab]", r"\s", r"aa|b", *PATTERNS]


def any_subject(rng: random.Random, family: str | None = None) -> Subject:
    """One that streamtok and `tokenizers` take."""
    while True:
        name = family or rng.choices(list(FAMILIES), list(FAMILIES.values()))[0]
        try:
            found = of_family(rng, name)
        except (streamtok.VocabularyError, streamtok.PatternError):
            continue
        if found is not None:
            return found


def machine_subject(rng: random.Random) -> Subject:
    """One for a machine of `states/`: of a random file, or of those that are made once."""
    if rng.random() < 0.15:
        return any_subject(rng, rng.choice(["file", "pieces file", "sentencepiece", "stages"]))
    return encodings.any_subject(rng)


def of_family(rng: random.Random, family: str) -> Subject | None:
    if family == "stages":
        return of_file(family, staged_file(rng))
    if family == "file":
        return of_file(family, random_file(rng))
    if family == "pieces file":
        return of_file(family, random_piece_file(rng))
    if family == "sentencepiece":
        return of_sentencepiece(rng)
    if family == "bundled":
        encoding = encoding_of(rng.choice([*PACKED, "llama3_style"]))
        words = [*"ab 1é日\n'\u3000", " the", "ing", "=", "😀", " 日本", "中。"]
        return Subject(family, encoding, words=words)
    return made(family, rng.randrange(36 if family != "long" else 6))


def of_file(family: str, file: File) -> Subject | None:
    text = json.dumps(file)
    value = JsonValue(parse_json(text.encode(), "FILE"), "FILE")
    encoding = read_huggingface(value, "random")
    subject = Subject(family, encoding, words=words_of(file), file=file)
    return None if subject.real is None else subject


def words_of(file: File) -> list[str]:
    tokens = [token for token in ids_of(file["model"]) if token and not token.startswith("<0x")]
    if len(tokens) > 256:
        back = {symbol: chr(byte) for byte, symbol in BYTE_SYMBOLS.items() if byte < 128}
        tokens = ["".join(back.get(c, "") for c in token) for token in tokens[256:]]
    added = [token["content"] for token in file["added_tokens"]]
    return [*"ab a\n", *"aé日", "\u2581", *filter(None, tokens), *added]


def staged_file(rng: random.Random) -> File:
    """A pre-tokenizer that cuts, and then cuts again or changes each piece."""
    has_bytes = rng.random() < 0.4
    pattern = (
        {"String": rng.choice([" ", "a", "ab"])}
        if rng.random() < 0.4
        else {"Regex": rng.choice(CUTS)}
    )
    steps = [split(pattern, rng.choice(BEHAVIORS), invert=rng.random() < 0.1)]
    for _ in range(rng.choice([0, 0, 1, 2])):
        cut = split({"Regex": rng.choice(CUTS)}, rng.choice(BEHAVIORS))
        steps.append(rng.choice([cut, metaspace(rng), byte_level(rng, rng.random() < 0.5)]))
    end = byte_level(rng, rng.random() < 0.7) if has_bytes else metaspace(rng)
    if not has_bytes and rng.random() < 0.7:
        end |= {"prepend_scheme": "always", "split": False}
    steps.append(end)
    alphabet = rng.choice(ALPHABETS)
    kind = rng.choice(["BPE", "BPE", "Unigram", "Unigram", "WordPiece", "WordLevel"])
    model = (
        random_model(rng, "bytes" if has_bytes else "characters", alphabet)
        if kind == "BPE"
        else random_pieces(rng, kind, alphabet)
    )
    file = file_of(
        model,
        {"type": "Sequence", "pretokenizers": steps},
        random_decoder(rng, "bytes" if has_bytes else "characters"),
        random_normalizer(rng, "bytes") if rng.random() < 0.15 else None,
    )
    return with_added_tokens(rng, file, alphabet) if rng.random() < 0.3 else file


def of_sentencepiece(rng: random.Random) -> Subject | None:
    try:
        from ..random_tokenizers import sentencepieces
    except ImportError:
        return None
    kind = rng.choice([1, 1, 2])
    rows, settings = sentencepieces.random_rows(rng, kind)
    data = sentencepieces.made(rows, kind, settings)
    words = [*"ab a\n", *"aé日", *(text for text, *_ in rows if not text.startswith("<0x"))]
    encoding = read_sentencepiece(data, "FILE", "random")
    return Subject("sentencepiece", encoding, words=words)
