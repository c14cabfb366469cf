"""Whole texts: each installed tokenizer in each mode, with ids compared before anything is timed.

`pytest benchmarks/ --benchmark-enable --benchmark-only`. The text is warm here; compare.py takes
fresh text.
"""

from __future__ import annotations

import numpy as np
import pytest

import streamtok
from benchmarks import peers

from .conftest import ENCODING

MODES = [(peer.name, mode) for peer in peers.PEERS for mode in peer.modes if mode != "count"]
KNOWN_TO_DIFFER = {"iree-tokenizer"}


@pytest.fixture(scope="module")
def encoding() -> streamtok.Encoding:
    return streamtok.get_encoding(ENCODING)


@pytest.mark.parametrize("who", MODES, ids="-".join)
def test_encode(benchmark, load_peer, encoding, text, who):
    peer, mode = who
    encode = load_peer(peer).mode(mode)
    given = load_peer(peer).prepare(mode, text)
    expected = encoding.encode_to_numpy(text)
    if not np.array_equal(peers.as_array(encode(given)), expected):
        if peer in KNOWN_TO_DIFFER:
            pytest.skip(f"the ids of {peer} differ")
        pytest.fail(f"the ids of {peer} differ from streamtok's")
    benchmark.group = f"encode {len(text.encode())} bytes"
    benchmark.extra_info["bytes"] = len(text.encode())
    benchmark.pedantic(encode, args=(given,), rounds=3, warmup_rounds=1)


def test_count(benchmark, encoding, text):
    assert encoding.count(text) == len(encoding.encode(text))
    benchmark.extra_info["bytes"] = len(text.encode())
    benchmark.pedantic(encoding.count, args=(text,), rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("kind", ["list", "array"])
def test_decode_bytes(benchmark, encoding, text, kind):
    ids = encoding.encode(text) if kind == "list" else encoding.encode_to_numpy(text)
    assert encoding.decode_bytes(ids) == text.encode()
    benchmark.extra_info["bytes"] = len(text.encode())
    benchmark.pedantic(encoding.decode_bytes, args=(ids,), rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("size", [11, 100, 1000])
def test_call(benchmark, encoding, text, size):
    line = text[:size]
    assert encoding.decode(encoding.encode(line)) == line
    benchmark.group = f"a call on {size} characters"
    benchmark(encoding.encode, line)
