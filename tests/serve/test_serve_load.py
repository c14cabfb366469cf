"""Hundreds of connections at once, all ids compared; `benchmarks/serve_load.py` has more."""

import asyncio
import sys

import pytest

import streamtok
from benchmarks import serve_load

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc")
CLIENTS = 500


def test_no_id_is_lost_or_mixed_up():
    serve_load.raise_descriptor_limit(CLIENTS + 100)
    enc = streamtok.get_encoding("cl100k_base")
    texts = serve_load.make_texts(CLIENTS, 6000)
    assert len(set(texts)) == CLIENTS
    expected = [enc.encode_to_numpy(text, disallowed_special=()) for text in texts]
    options = ["--tcp", "127.0.0.1:0", "--format", "u32", "--special", "plain"]
    with serve_load.server(*options) as (process, address):
        row = asyncio.run(serve_load.drive(process, address, texts, expected))
        assert row["idle"] < 40 * 1024  # bytes a connection; about 11 KiB where it is measured
        expected[7] = expected[8]  # the check itself
        with pytest.raises(serve_load.WrongIds, match="client 7"):
            asyncio.run(serve_load.drive(process, address, texts[:9], expected[:9]))
        process.terminate()
        assert process.wait(20) == 0
