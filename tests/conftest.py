"""Encodings, tiktoken's twins of them, texts that break tokenizers, and real text where it is."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

import streamtok

PACKED = ["r50k_base", "cl100k_base", "o200k_base"]
SHARED = Path(__file__).resolve().parent.parent.parent / "shared"

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@functools.lru_cache
def llama3_style() -> streamtok.Encoding:
    """Llama 3's pattern, with special tokens of its kind, over cl100k's tokens."""
    base = streamtok.get_encoding("cl100k_base")
    return streamtok.Encoding(
        "llama3_style",
        pat_str=LLAMA3_PATTERN,
        mergeable_ranks=base._vocabulary,
        special_tokens={"<|begin_of_text|>": 128000, "<|eot_id|>": 128009, "<|eot_id|>\n": 128010},
    )


def encoding_of(name: str) -> streamtok.Encoding:
    return llama3_style() if name == "llama3_style" else streamtok.get_encoding(name)


@functools.lru_cache
def twin_of(name: str):
    """tiktoken's Encoding made of the same tables."""
    import tiktoken

    enc = encoding_of(name)
    return tiktoken.Encoding(
        name,
        pat_str=enc._pat_str,
        mergeable_ranks=enc._mergeable_ranks,
        special_tokens=enc._special_tokens,
    )


@pytest.fixture(params=[*PACKED, "llama3_style"])
def enc(request: pytest.FixtureRequest) -> streamtok.Encoding:
    return encoding_of(request.param)


@pytest.fixture
def twin(enc: streamtok.Encoding):
    return twin_of(enc.name)


def stream_ids(stream: streamtok.StreamEncoder, chunks: list) -> list[int]:
    ids: list[int] = []
    for chunk in chunks:
        ids += stream.encode(chunk)
    return ids + stream.flush()


def chunked(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def corpus(name: str) -> bytes:
    path = SHARED / "corpus" / f"{name}.txt"
    if not path.exists():
        pytest.skip("the shared corpus is not on this machine")
    return path.read_bytes()


def cascades() -> list[dict]:
    path = SHARED / "vectors" / "cascade.json"
    if not path.exists():
        pytest.skip("the shared vectors are not on this machine")
    return json.loads(path.read_text("utf-8"))["cases"]
