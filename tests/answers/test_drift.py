"""Ids that came from elsewhere: `is_canonical`, `first_drift`, `continue_from`."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok.answers import drift as module
from streamtok.engines.rules import TextRules, TokenFlags

from ..tokenizer_files import random_file, random_piece_file, random_text
from .slowly import any_encoding, any_text, cut, with_rules

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


@settings(max_examples=120)
@given(seed=SEEDS, spoil=st.booleans())
def test_a_stream_goes_on_behind_ids(seed: int, spoil: bool) -> None:
    rng = random.Random(seed)
    encoding, letters = any_encoding(rng)
    before, behind = any_text(rng, letters, 4), any_text(rng, letters, 4)
    ids = encoding.encode(before, **KEPT)
    if spoil and ids:
        i = rng.randrange(len(ids))
        token = encoding.decode_single_token_bytes(ids[i])
        ids[i : i + 1] = [encoding.encode_single_token(bytes([byte])) for byte in token]
    text = encoding.decode_bytes(ids)  # `before`, unless the pattern leaves characters out
    try:
        stream = encoding.continue_from(ids, errors="surrogateescape")
    except (streamtok.UnsupportedStreamError, streamtok.UnsupportedPatternError):
        return  # whole texts only
    if encoding.is_canonical(ids):
        assert stream.corrected == []
    found = ids[: stream.kept] + stream.corrected
    for chunk in cut(rng, behind):
        found += stream.encode(chunk)
    assert found + stream.flush() == encoding.encode(text + behind, **KEPT)


def test_special_ids_stay_what_they_are() -> None:
    end = CL100K.eot_token
    ids = [*CL100K.encode("one"), end, *CL100K.encode("two three")]
    assert CL100K.is_canonical(ids)
    spelled = CL100K.encode("a<|endoftext|>b", disallowed_special=())
    assert CL100K.is_canonical([*spelled, end, *spelled])
    late = [*ids, end, *CL100K.encode("f"), *CL100K.encode("our")]
    assert CL100K.first_drift(late) == len(ids) + 1
    stream = CL100K.continue_from(ids)
    found = ids[: stream.kept] + stream.encode("fold!", final=True)
    assert found == [*ids[:2], *CL100K.encode("two threefold!")]
    assert stream.kept >= 3
    stream = CL100K.continue_from([*ids, end])
    assert (stream.kept, stream.corrected, stream.pending) == (len(ids) + 1, [], 0)


def test_an_encoding_that_puts_a_space_first() -> None:
    encoding = with_rules(1, "spaces")
    ids = encoding.encode("ab ab", **KEPT)
    assert encoding.is_canonical(ids)
    for before in ("<|endoftext|>", "ab <|endoftext|>", "b<|endoftext|>ab a"):
        ids = encoding.encode(before, allowed_special="all")
        stream = encoding.continue_from(ids)
        found = ids[: stream.kept] + stream.corrected + stream.encode(" abb", final=True)
        assert found == encoding.encode(before + " abb", allowed_special="all")
    rules = TextRules(normalizer="spaces", longest_first=True)
    both = {"<s>": 500, "<s>x": 501}
    ranks = {bytes([i]): i for i in range(256)}
    unclear = streamtok.Encoding(
        "unclear", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens=both, rules=rules
    )
    with pytest.raises(ValueError, match="'<s>' at index 1, and what comes after"):
        unclear.continue_from([97, 500])


@pytest.mark.parametrize("block", range(4))
def test_random_files(tmp_path: Path, block: int) -> None:
    """Files whose decoders leave out the first space, change texts, or put spaces between words."""
    compared = 0
    for seed in range(100 * block, 100 * block + 100):
        rng = random.Random(seed)
        file = (random_file, random_piece_file)[seed % 2](rng)
        (tmp_path / "tokenizer.json").write_text(json.dumps(file))
        try:
            encoding = streamtok.load(tmp_path / "tokenizer.json", cache=False)
        except streamtok.StreamtokError:
            continue
        before, behind = random_text(rng, file), random_text(rng, file)
        ids = encoding.encode(before, disallowed_special=())
        data = encoding.decode_bytes(ids)
        if data.decode("utf-8", "ignore").encode() != data or encoding._specials.ids & {*ids}:
            continue  # special ids stay what they are
        again = encoding.encode(data, disallowed_special=())
        shared = [a == b for a, b in zip(again, ids, strict=False)]
        assert encoding.first_drift(ids) == (
            None if again == ids else [*shared, False].index(False)
        )
        stream = encoding.continue_from(ids)
        found = ids[: stream.kept] + stream.corrected
        for chunk in cut(rng, behind.encode()):
            found += stream.encode(chunk)
        found += stream.flush()
        assert found == encoding.encode(data + behind.encode(), disallowed_special=()), seed
        compared += 1
    assert compared > 40


def test_special_tokens_that_take_what_follows() -> None:
    """They are searched for in changed text, by the streams that allow them only."""
    flags = TokenFlags(normalized=True, rstrip=True)
    ranks = {bytes([i]): i for i in range(256)}
    rules = TextRules(token_flags=(("<s>", flags),), longest_first=True)
    encoding = streamtok.Encoding(
        "takes", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={"<s>": 500}, rules=rules
    )
    with pytest.raises(ValueError, match="'<s>' at index 1, and what comes after"):
        encoding.continue_from([97, 500])


def test_nothing_and_what_is_no_id() -> None:
    assert CL100K.is_canonical([])
    stream = CL100K.continue_from([])
    assert stream.kept == 0
    assert stream.encode("text", final=True) == CL100K.encode("text")
    for call in (CL100K.first_drift, CL100K.is_canonical, CL100K.continue_from):
        with pytest.raises(KeyError, match="position 1"):
            call([1, 100_300])
        with pytest.raises(OverflowError):
            call([-1])
        with pytest.raises(TypeError):
            call("text")  # type: ignore[arg-type]


def test_the_settings_are_those_of_what_follows() -> None:
    stream = CL100K.continue_from([1], allowed_special="all", max_pending=10)
    assert stream.max_pending == 10
    assert stream.encode("<|endoftext|>")[-1] == CL100K.eot_token
    again = pickle.loads(pickle.dumps(CL100K.continue_from(CL100K.encode("hello wor"))))
    assert (again.kept, again.corrected) == (1, [])
    assert again.encode("ld", final=True) == CL100K.encode("hello world")[1:]
    assert again.copy().encode("x", final=True) == CL100K.encode("x")


def test_nothing_is_encoded_after_the_first_difference(monkeypatch):
    encoding = streamtok.get_encoding("r50k_base")
    fed = []
    known = module.feed
    monkeypatch.setattr(module, "feed", lambda *args: fed.append(len(args[2])) or known(*args))
    ids = encoding.encode("hello world, " * 20_000)
    assert encoding.first_drift(ids) is None
    assert len(fed) > 10
    fed.clear()
    assert encoding.first_drift([*encoding.encode("hel"), *encoding.encode("lo"), *ids]) == 0
    assert len(fed) == 1
