"""Ids that came from elsewhere: `is_canonical`, `first_drift`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok

from ..encodings import SINGLES, make_encoding
from ..tokenizer_files import random_file, random_piece_file, random_text
from .slowly import any_encoding, any_text

CL100K = streamtok.get_encoding("cl100k_base")
SEEDS = st.integers(0, 1 << 40)
KEPT: dict[str, Any] = {"errors": "surrogateescape", "disallowed_special": ()}


def drift(encoding: streamtok.Encoding, ids: list[int]) -> int | None:
    """The law, for ids without special ones."""
    again = encoding.encode(encoding.decode_bytes(ids), **KEPT)
    if again == ids:
        return None
    shared = [a == b for a, b in zip(again, ids, strict=False)]
    return [*shared, False].index(False)


@settings(max_examples=120)
@given(seed=SEEDS, changes=st.integers(0, 3))
def test_drift_is_where_encoding_again_differs(seed: int, changes: int) -> None:
    rng = random.Random(seed)
    encoding, letters = any_encoding(rng)
    ids = encoding.encode(any_text(rng, letters), **KEPT)
    others = encoding.encode(letters * 3, **KEPT)
    for _ in range(changes):
        at = rng.randint(0, len(ids))
        ids[at : at + rng.randint(0, 1)] = rng.choices(others, k=rng.randint(0, 2))
    expected = drift(encoding, ids)
    assert encoding.first_drift(ids) == expected
    assert encoding.is_canonical(np.array(ids, np.uint32)) is (expected is None)


def test_special_ids_stay_what_they_are() -> None:
    end = CL100K.eot_token
    ids = [*CL100K.encode("one"), end, *CL100K.encode("two three")]
    assert CL100K.is_canonical(ids)
    spelled = CL100K.encode("a<|endoftext|>b", disallowed_special=())
    assert CL100K.is_canonical([*spelled, end, *spelled])
    late = [*ids, end, *CL100K.encode("f"), *CL100K.encode("our")]
    assert CL100K.first_drift(late) == len(ids) + 1


def test_a_pattern_without_tables() -> None:
    encoding = make_encoding(r"(?<=a)b|.", SINGLES | {b"ab": 256})
    assert encoding.first_drift([97, 98, 97]) is None
    assert encoding.first_drift([97, 256]) == 1


def test_a_stream_continues_after_ids() -> None:
    ids = CL100K.encode("How are yo")
    stream = CL100K.stream_encoder()
    certain = stream.encode(CL100K.decode_bytes(ids))
    assert certain == ids[: len(certain)]
    assert certain + stream.encode("u?", final=True) == CL100K.encode("How are you?")


def test_random_files(tmp_path: Path) -> None:
    """Files whose decoders leave out the first space, change texts, or put spaces between words."""
    compared = 0
    for seed in range(150):
        rng = random.Random(seed)
        file = (random_file, random_piece_file)[seed % 2](rng)
        (tmp_path / "tokenizer.json").write_text(json.dumps(file))
        try:
            encoding = streamtok.load(tmp_path / "tokenizer.json", cache=False)
        except streamtok.StreamtokError:
            continue
        ids = encoding.encode(random_text(rng, file), disallowed_special=())
        data = encoding.decode_bytes(ids)
        if data.decode("utf-8", "ignore").encode() != data or encoding.definition.specials.ids & {
            *ids
        }:
            continue  # special ids stay what they are
        again = encoding.encode(data, disallowed_special=())
        shared = [a == b for a, b in zip(again, ids, strict=False)]
        assert encoding.first_drift(ids) == (
            None if again == ids else [*shared, False].index(False)
        )
        compared += 1
    assert compared > 60


def test_nothing_and_what_is_no_id() -> None:
    assert CL100K.is_canonical([])
    for call in (CL100K.first_drift, CL100K.is_canonical):
        with pytest.raises(KeyError, match="position 1"):
            call([1, 100_300])
        with pytest.raises(OverflowError):
            call([-1])
        with pytest.raises(TypeError):
            call("text")  # type: ignore[arg-type]
