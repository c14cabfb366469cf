"""Each law at every cut of every nasty text: bundled, normalized and random encodings."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

import streamtok
from streamtok.engines.source_units import UNITS

from ..conftest import PACKED, encoding_of
from ..nasty import TEXTS
from .slowly import truncated, with_rules
from .test_offsets import is_plain
from .test_offsets import slowly as spans_of_bytes

HOW: dict[str, Any] = {
    "errors": "surrogateescape",
    "disallowed_special": (),
    "allowed_special": "all",
}
ENCODINGS: dict[str, Callable[[], streamtok.Encoding]] = {
    **{name: functools.partial(encoding_of, name) for name in PACKED},
    "NFC, a pattern": functools.partial(with_rules, 0, "NFC"),
    "NFC, the whole text": functools.partial(with_rules, 1, "NFC"),
    "SentencePiece's spaces": functools.partial(with_rules, 3, "spaces"),
}


@pytest.fixture(params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> streamtok.Encoding:
    return ENCODINGS[request.param]()


def test_counts(encoding: streamtok.Encoding) -> None:
    for text in TEXTS:
        total = len(encoding.encode(text, **HOW))
        for place in range(len(text) + 1):
            counter = encoding.counter(**HOW)
            certain = counter.update(text[:place])
            assert counter.estimate == len(encoding.encode(text[:place], **HOW))
            assert certain + counter.update(text[place:]) == counter.total
            assert counter.finish() == total


def test_offsets(encoding: streamtok.Encoding) -> None:
    units = itertools.cycle(UNITS)
    for text, unit in zip(TEXTS, units, strict=False):
        ids, spans = encoding.encode_with_offsets(text, unit, **HOW)
        if is_plain(encoding):
            wanted = spans_of_bytes(encoding, text, unit, HOW["errors"], ids.tolist())
            assert spans.tolist() == wanted
        for place in range(len(text) + 1):
            stream = encoding.stream_encoder(**HOW)
            found: list[tuple[int, list[int]]] = []
            for chunk, is_last in ((text[:place], False), (text[place:], True)):
                more, where = stream.encode_with_offsets(chunk, is_last, unit=unit)
                found += zip(more.tolist(), where.tolist(), strict=True)
            assert found == list(zip(ids.tolist(), spans.tolist(), strict=True))


def test_documents(encoding: streamtok.Encoding) -> None:
    for data in TEXTS:
        text = data.decode("utf-8", "surrogateescape")
        ids = encoding.encode(text, **HOW)
        for place in range(len(text) + 1):
            doc = encoding.document(text[:place], **HOW)
            stable = doc.ids[: doc.stable]
            first, removed, added = doc.append(text[place:])
            before = encoding.encode(text[:place], **HOW)
            assert before[:first] + added + before[first + removed :] == doc.ids == ids
            assert ids[: len(stable)] == stable


def test_truncated_texts(encoding: streamtok.Encoding) -> None:
    rng = random.Random(8)
    for text in TEXTS:
        budget = rng.randint(1, 1 + len(encoding.encode(text, **HOW)))
        for side in ("right", "left"):
            expected = truncated(encoding, text, budget, side, HOW)
            assert encoding.truncate(text, budget, side, **HOW) == expected
        whole = encoding.truncate(text, budget, **HOW)
        for place in range(len(text) + 1):
            assert encoding.truncate([text[:place], text[place:]], budget, **HOW) == whole


def test_split_texts(encoding: streamtok.Encoding) -> None:
    for text in TEXTS:
        chunks = list(encoding.split(text, 9, **HOW))
        assert b"".join(bytes(chunk.text) for chunk in chunks) == text
        for place in range(len(text) + 1):
            assert list(encoding.split([text[:place], text[place:]], 9, **HOW)) == chunks
