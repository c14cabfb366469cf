"""The metrics, read with the parser of the official Prometheus client library."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import urllib.request
from typing import get_args

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streamtok.serve import Counters, Server, serve
from streamtok.serve.counters import Limit
from streamtok.serve.metrics import expose, make_registry

from ..serve_clients import ENV, go, hang_up, open_client, talk, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals")
COMMAND = [sys.executable, "-m", "streamtok", "serve"]


def values(text: str) -> dict[str, float]:
    """Value of each sample, by its name and, if it has one, the value of its label."""
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("streamtok_")
    }


def sampled(server: Server) -> dict[str, float]:
    return values(generate_latest(make_registry(server.counters)).decode())


def test_every_metric(enc):
    async def test():
        settings = {"max_connections": 2, "max_pending": 4096, "idle_timeout": 0.3}
        async with await serve(enc, port=0, **settings) as server:
            text = b"hello world, and so on. " * 1000
            await talk(server, text)
            await talk(server, b"\xff")
            await talk(server, b"<|endoftext|>")
            clients = [await open_client(server) for _ in range(2)]
            await until(lambda: server.counters.connections_open == 2)
            await talk(server, b"one too many")
            now = sampled(server)
            assert now["streamtok_connections_open"] == 2
            for reader, writer in clients:
                await reader.read()  # they idle for too long
                await hang_up(writer)
            await until(lambda: server.counters.connections_open == 0)
            now = sampled(server)
            tokens = len(enc.encode(text))
            assert now == {
                "streamtok_bytes_total": len(text),
                "streamtok_tokens_total": tokens,
                "streamtok_connections_total": 6,
                "streamtok_connections_open": 0,
                "streamtok_connections_refused_total": 1,
                "streamtok_connections_reset_total": 0,
                "streamtok_special_token_refusals_total": 1,
                "streamtok_decoding_errors_total": 1,
                **{f"streamtok_limits_hit_total {limit}": 0 for limit in get_args(Limit)},
                "streamtok_limits_hit_total connections": 1,
                "streamtok_limits_hit_total idle": 2,
            }

    go(test)


def test_a_library_that_is_missing(tmp_path):
    (tmp_path / "prometheus_client.py").write_text("raise ModuleNotFoundError(name=__name__)")
    env = {**ENV, "PYTHONPATH": os.pathsep.join([str(tmp_path), ENV["PYTHONPATH"]])}
    done = subprocess.run(
        [*COMMAND, "--tcp", "127.0.0.1:0", "--metrics", "127.0.0.1:0"],
        capture_output=True, env=env, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == (
        b'streamtok: error: metrics need prometheus-client: pip install "streamtok[metrics]"\n'
    )


def test_a_client_that_breaks_off(capfd):
    with expose(Counters(), "127.0.0.1", 0) as url:
        port = int(url.split(":")[2].split("/")[0])
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert b"streamtok_bytes_total 0.0" in answer.read()
    assert capfd.readouterr().err == ""
    with contextlib.closing(socket.create_server(("127.0.0.1", port))):
        pass  # the port is free again
