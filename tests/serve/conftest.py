"""The encoding of the servers' tests, which replaces the fixture of all encodings."""

from __future__ import annotations

import pytest

import streamtok


@pytest.fixture(scope="module")
def enc() -> streamtok.Encoding:
    return streamtok.get_encoding("cl100k_base")
