"""Arrays of another type, shape or order than the core takes: an error that says so, no crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok._core.encode import LIST, Cuts, TokenTable, find_parts, spell
from streamtok._core.train import MergeLoop, PretokenTable

from ..conftest import encoding_of, scanner_of

BYTES = bytes(range(256))
OFFSETS, IDS = np.arange(257, dtype=np.uint32), np.arange(256, dtype=np.uint32)
NONE = np.full(256, 0xFFFFFFFF, np.uint32)
ONE, COUNT = np.ones(1, np.uint32), np.ones(1, np.uint64)


def table(*arrays: Any) -> TokenTable:
    return TokenTable(BYTES, *arrays)


def table_of_parts(*parts: Any) -> TokenTable:
    return TokenTable(BYTES, OFFSETS, IDS, parts=parts)


def merges(offsets: Any, rows: Any) -> Any:
    return find_parts(BYTES, offsets, rows)


def counts(*arrays: Any) -> None:
    PretokenTable().load(*arrays)


def loop(*arrays: Any) -> MergeLoop:
    return MergeLoop(*arrays, 5, 1, False)


def split(*arrays: Any) -> Any:
    return encoding_of("r50k_base").definition.encoder.encode_split(*arrays, LIST)


CALLS: list[tuple[Callable[..., Any], list[Any]]] = [
    (table, [OFFSETS, IDS, np.zeros(256, np.uint32), IDS, IDS]),
    (table_of_parts, [NONE, NONE]),
    (spell, [NONE[:1], ONE, b"a"]),
    (merges, [OFFSETS, np.zeros((0, 3), np.uint32)]),
    (counts, [b"a", ONE, COUNT, COUNT]),
    (loop, [b"a", ONE, COUNT, IDS]),
    (split, [b"ab", np.array([1, 2], np.int64)]),
]


@pytest.mark.parametrize(
    ("call", "arguments"), CALLS, ids=lambda value: getattr(value, "__name__", "")
)
def test_other_arrays_are_refused(call: Callable[..., Any], arguments: list[Any]) -> None:
    call(*arguments)
    for i, good in enumerate(arguments):
        array = np.frombuffer(good, np.uint8) if isinstance(good, bytes) else good
        twice = np.repeat(array, 2, 0)
        others: list[Any] = [
            array.astype(np.float64),
            array.astype(np.int16),
            array.astype(">u8"),
            array[..., None],
            np.zeros((), array.dtype),
            [1, 2],
            7,
        ]
        if len(array) > 1:
            others.append(twice[::2])  # every other item
        for other in others:
            with pytest.raises((TypeError, ValueError)):
                call(*arguments[:i], other, *arguments[i + 1 :])


def test_messages_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"offsets must be an array of uint32, not of '[lq]'"):
        table(OFFSETS.astype(np.int64), IDS)
    with pytest.raises(ValueError, match="token 0 is empty"):
        table(np.where(OFFSETS == 1, 0, OFFSETS).astype(np.uint32), IDS)
    with pytest.raises(ValueError, match="merges must have 2 dimensions, not 1"):
        merges(OFFSETS, IDS)
    with pytest.raises(ValueError, match="merges of 2 tokens each"):
        merges(OFFSETS, np.zeros((2, 2), np.uint32))
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
