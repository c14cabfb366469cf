"""Arrays of another type, shape or order than the core takes: an error that says so, no crash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok._core.encode import Cuts, TokenTable, find_parts
from streamtok._core.train import PretokenTable

from ..conftest import scanner_of

BYTES = bytes(range(256))
OFFSETS, IDS = np.arange(257, dtype=np.uint32), np.arange(256, dtype=np.uint32)
ONE, COUNT = np.ones(1, np.uint32), np.ones(1, np.uint64)


def table(*arrays: Any) -> TokenTable:
    return TokenTable(BYTES, *arrays)


def merges(offsets: Any, rows: Any) -> Any:
    return find_parts(BYTES, offsets, rows)


def counts(*arrays: Any) -> None:
    PretokenTable().load(*arrays)


def test_messages_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"offsets must be an array of uint32, not of '[lq]'"):
        table(OFFSETS.astype(np.int64), IDS)
    with pytest.raises(ValueError, match="token 0 is empty"):
        table(np.where(OFFSETS == 1, 0, OFFSETS).astype(np.uint32), IDS)
    with pytest.raises(ValueError, match="merges must have 2 dimensions, not 1"):
        merges(OFFSETS, IDS)
    with pytest.raises(ValueError, match="merges of 2 tokens each"):
        merges(OFFSETS, np.zeros((2, 2), np.uint32))
    for wrong in (OFFSETS.astype(float), OFFSETS.astype(">u4"), OFFSETS[::2], OFFSETS[:, None]):
        with pytest.raises(ValueError, match=r"offsets|not C-contiguous"):
            table(wrong, IDS)
    with pytest.raises(TypeError, match="bytes-like"):
        counts(None, ONE, COUNT, COUNT)


def test_tables_of_a_pattern() -> None:
    pattern = streamtok.Pattern.compile(r"\w+|\W")
    scanner = scanner_of(pattern)
    with pytest.raises(ValueError, match="not the pairs of this pattern"):
        Cuts(scanner, np.zeros((3, 4), np.uint8))
    with pytest.raises(ValueError, match="65536 code points"):
        type(scanner)(pattern, np.zeros(5, np.uint8))
    with pytest.raises(ValueError, match="substitutes must be an array of uint8"):
        type(scanner)(pattern, np.zeros(0x10000, np.float32))
