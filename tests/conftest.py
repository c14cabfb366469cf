"""Encodings, tiktoken's twins of them, and text of five kinds that any machine has."""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import streamtok
from benchmarks.corpus import NAMES, generated
from streamtok._core.encode import Scanner

PACKED = ["r50k_base", "cl100k_base", "o200k_base"]
CORPORA = NAMES
os.environ["STREAMTOK_CORPUS"] = os.devnull  # benchmarks.corpus makes its texts, wherever we are

# What `load` keeps stays away from the user's folder, and from other runs.
_CACHE = tempfile.TemporaryDirectory(prefix="streamtok-tests-", ignore_cleanup_errors=True)
os.environ["STREAMTOK_CACHE"] = _CACHE.name

# No test asserts on time: a busy machine is not a defect.
hypothesis.settings.register_profile("untimed", deadline=None, max_examples=50)
hypothesis.settings.load_profile("untimed")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and Python keeps it so.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What not every machine or build can run is no test there, and the report's first lines say so.
collect_ignore = []
if importlib.util.find_spec("streamtok._core._failing") is None:
    collect_ignore.append("core/test_allocation_failures.py")
if not (Path(__file__).resolve().parents[1] / "streamtok").is_dir():  # a copy without the sources
    collect_ignore.append("core/test_headers.py")

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def scanner_of(pattern: streamtok.Pattern) -> Scanner:
    return Scanner(pattern, pattern.substitutes)


@functools.lru_cache
def llama3_style() -> streamtok.Encoding:
    """Llama 3's pattern, with special tokens of its kind, over cl100k's tokens."""
    base = streamtok.get_encoding("cl100k_base")
    return streamtok.Encoding(
        "llama3_style",
        pat_str=LLAMA3_PATTERN,
        mergeable_ranks=base.definition.vocabulary,
        special_tokens={"<|begin_of_text|>": 128000, "<|eot_id|>": 128009, "<|eot_id|>\n": 128010},
    )


def pytest_report_header() -> list[str]:
    where = f"streamtok: {Path(streamtok.__file__).parent}"
    return [where, f"not collected here: {', '.join(collect_ignore) or 'nothing'}"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """HYPOTHESIS_PROFILE=sanitize: a tenth of the examples, for code that is ten times slower."""
    if os.environ.get("HYPOTHESIS_PROFILE") != "sanitize":
        return
    for item in items:
        test = getattr(item, "obj", None)
        chosen = getattr(test, "_hypothesis_internal_use_settings", None)
        if chosen is not None:
            fewer = hypothesis.settings(chosen, max_examples=max(10, chosen.max_examples // 10))
            getattr(test, "__func__", test)._hypothesis_internal_use_settings = fewer


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


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> Iterator[None]:
    """What tests keep (encodings, texts) is not looked through by each collection after them."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _cache_limit() -> Iterator[None]:
    """The command line sets the limit of its process; in a test that is that of all tests."""
    before = streamtok.cache_limit()
    yield
    if streamtok.cache_limit() != before:
        streamtok.set_cache_limit(before)


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


@functools.lru_cache
def corpus(name: str) -> bytes:
    """UTF-8 of one of the five kinds in CORPORA, about 2 MB, made from what Python brings along."""
    return generated(name)
