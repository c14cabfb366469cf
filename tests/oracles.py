"""What format tests have in common: texts, an encoder of another library, and every kind of cut."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamtok

from .conftest import CORPORA, corpus, stream_ids
from .nasty import TEXTS

NASTY = [text.decode() for text in TEXTS if text.decode("utf-8", "ignore").encode() == text]
PLAIN = [
    "The quick brown fox, it's 12345 times jumped — naïve café; 日本語 한국어 \U0001f469‍!",
    "def f(x):\n    return x  +  1\n\n\n# done\t\t\n" * 3,
    "  leading, trailing  ",
    "e\u0301 \u1e9e ﬁ İ ſ 'S 'LL we'Ve \u2581 \u2581\u2581x  \u200d\u200d \u200da",
    "=" * 300 + " " * 300 + "a" * 300 + "\n" * 40,
]


@functools.lru_cache
def corpus_texts(size: int = 20_000) -> tuple[str, ...]:
    """A piece from the middle of each kind of text."""
    texts = map(corpus, CORPORA)
    return tuple(
        data[(start := len(data) // 3) : start + size].decode("utf-8", "ignore") for data in texts
    )


def texts() -> list[str]:
    return [*PLAIN, *NASTY, *corpus_texts()]


def assert_same(
    enc: streamtok.Encoding,
    expected: Callable[[str], list[int]],
    samples: list[str] | None = None,
    *,
    allowed_special: object = frozenset(),
    round_trip: bool = True,
    stream: bool = True,
) -> None:
    """Whole texts, and streams of them cut at random, against `expected`."""
    rng = random.Random(7)
    settings = {"allowed_special": allowed_special, "disallowed_special": ()}
    compared = 0
    for text in texts() if samples is None else samples:
        ids = list(expected(text))
        assert enc.encode(text, **settings) == ids, text[:200]
        assert enc.count(text, **settings) == len(ids)
        if round_trip:
            assert enc.decode(ids) == text
        if stream:
            data = text.encode()
            for mean in (1, 7, 1000) if len(data) < 2000 else (40, 3000):
                assert stream_ids(enc.stream_encoder(**settings), cut(rng, data, mean)) == ids
        compared += len(ids)
    assert compared > 0 or samples  # some have no ids


def cut(rng: random.Random, data: Any, mean: int = 3) -> list[Any]:
    """Bytes or a str in chunks, of which some are empty."""
    chunks = []
    at = 0
    while at < len(data):
        size = rng.randint(0, 2 * mean)
        chunks.append(data[at : at + size])
        at += size
    return chunks


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def refuses(function: Callable[..., object], *args: object, match: str, **more: object) -> None:
    with pytest.raises(streamtok.VocabularyError, match=match):
        function(*args, **more)
