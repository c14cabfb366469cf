"""Many threads on one object at a time: right ids always, or StreamInUseError and no change.

The objects are new, so that what is made on first use is made by several threads at once. Runs on
interpreters with the global lock and without; `.ci/sanitize thread` looks for data races in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok import registry
from streamtok.errors import StreamInUseError
from streamtok.patterns.dfa import compile_tables

from ..conftest import PACKED, encoding_of
from ..encodings import like
from ..live_threads import together

THREADS = 8
TEXT = "It’s 1234 words: naïve façade, привет мир, 日本語 text;\n\n    x = [1, 2]\n"
LONG = "ab" * 6000 + "日" * 3000 + " end"  # pre-tokens of which a stream holds but the end


def fresh(name: str = "cl100k_base") -> streamtok.Encoding:
    """An encoding with a table, a cache and a decoder of its own."""
    return like(name)


@pytest.mark.parametrize("name", PACKED)
def test_one_encoding(name: str) -> None:
    texts = [TEXT * k + str(k) for k in (1, 2, 40, 400)]
    expected = [encoding_of(name).encode_ordinary(text) for text in texts]
    enc = fresh(name)

    def use(number: int) -> None:
        for i in range(12):
            text, ids = texts[(i + number) % 4], expected[(i + number) % 4]
            assert enc.encode_ordinary(text) == ids
            assert enc.encode(text.encode()) == ids
            assert enc.encode_to_numpy(text).tolist() == ids
            assert enc.count(text) == len(ids)
            assert enc.decode(ids) == text
            assert enc.decode_bytes(np.array(ids, np.uint32)) == text.encode()
            assert enc.encode_ordinary_batch(texts[:2], num_threads=2) == expected[:2]

    together(*(lambda number=number: use(number) for number in range(THREADS)))


def test_what_is_made_on_first_use() -> None:
    """Lists of ints, sorted tokens, the entries of the decoder: made once, by the first to come."""
    ids = encoding_of("cl100k_base").encode_ordinary(LONG)
    many = encoding_of("cl100k_base").encode_ordinary(TEXT * 800)  # enough for a list of ints

    def stream(enc: streamtok.Encoding) -> list[int]:
        encoder = enc.stream_encoder()
        found = []
        for i in range(0, len(LONG), 3000):
            found += encoder.encode(LONG[i : i + 3000])
        return found + encoder.flush()

    def use(enc: streamtok.Encoding) -> None:
        calls = [lambda: stream(enc), lambda: enc.encode_ordinary(TEXT * 800)] * 3
        found = together(*calls, lambda: enc.decode(many), lambda: enc.decode_bytes(ids))
        assert found == [ids, many] * 3 + [TEXT * 800, LONG.encode()]

    for _ in range(4):
        use(fresh())


def test_one_cache() -> None:
    """The limit changes and memory is given back while others encode."""
    texts = [" ".join(f"w{i * 7919 % 99991:x}q" for i in range(k, k + 3000)) for k in range(4)]
    expected = [encoding_of("cl100k_base").encode_ordinary(text) for text in texts]
    enc = fresh()

    def encode(number: int) -> None:
        for i in range(10):
            assert enc.encode_ordinary(texts[(i + number) % 4]) == expected[(i + number) % 4]

    def disturb() -> None:
        for i in range(60):
            streamtok.set_cache_limit((0, 32 << 20, 1 << 20)[i % 3])
            assert enc.definition.encoder.cache_bytes() > 0
            assert enc.definition.encoder.spare_bytes() >= 0
            if i % 5 == 0:
                enc.definition.encoder.release()

    together(disturb, *(lambda number=number: encode(number) for number in range(THREADS)))


def test_one_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ENCODINGS", {})
    found = together(*(lambda name=name: streamtok.get_encoding(name) for name in PACKED * 4))
    for name, enc in zip(PACKED * 4, found, strict=True):
        assert enc is streamtok.get_encoding(name)
        assert enc.encode_ordinary(TEXT) == encoding_of(name).encode_ordinary(TEXT)


def test_one_pattern() -> None:
    source = encoding_of("o200k_base")._pat_str
    expected = streamtok.Pattern.compile(source)
    ids = encoding_of("o200k_base").encode_ordinary(TEXT * 40)
    for _ in range(2):
        pattern = streamtok.Pattern(source, compile_tables(source))

        def use(pattern: streamtok.Pattern = pattern) -> list[int]:
            assert pattern.is_total
            assert (pattern.settled == expected.settled).all()
            assert (pattern.clean_cut_pairs == expected.clean_cut_pairs).all()
            assert pattern.findall(TEXT) == expected.findall(TEXT)
            return like("o200k_base", pattern=pattern).encode_ordinary(TEXT * 40)

        assert together(*[use] * 4) == [ids] * 4


def used_by_all(use: Callable[[], Any], look: Callable[[], None]) -> int:
    """How often `use` went through, of many times in many threads, while another looks."""
    done = threading.Event()

    def keep_using() -> int:
        went = 0
        for _ in range(300):
            try:
                use()
                went += 1
            except StreamInUseError:
                pass
        return went

    def keep_looking() -> int:
        while not done.is_set():
            look()
        return 0

    watcher = threading.Thread(target=keep_looking)
    watcher.start()
    try:
        return sum(together(*[keep_using] * THREADS))
    finally:
        done.set()
        watcher.join()


def test_one_stream_encoder() -> None:
    """A call goes through as a whole or not at all; nobody sees half of one."""
    encoder = fresh().stream_encoder()
    chunk = " abcd日"  # 8 bytes; the ids of each but the last are out

    def look() -> None:
        assert 0 <= encoder.pending <= 8
        assert encoder.bytes_in % 8 == 0
        assert encoder.max_pending > 0

    given: list[int] = []
    went = used_by_all(lambda: given.append(len(encoder.encode(chunk))), look)
    assert went > 0
    assert encoder.bytes_in == 8 * went
    assert encoder.tokens_out == sum(given)
    rest = len(encoder.flush())
    assert sum(given) + rest == len(encoding_of("cl100k_base").encode_ordinary(chunk * went))


def test_one_stream_decoder() -> None:
    decoder = fresh().stream_decoder()
    ids = encoding_of("cl100k_base").encode_ordinary(TEXT)

    def look() -> None:
        assert decoder.pending == 0
        assert decoder.tokens_in % len(ids) == 0
        assert decoder.bytes_out % len(TEXT.encode()) == 0

    went = used_by_all(lambda: decoder.decode(ids), look)
    assert went > 0
    assert decoder.tokens_in == went * len(ids)
    assert decoder.bytes_out == went * len(TEXT.encode())
