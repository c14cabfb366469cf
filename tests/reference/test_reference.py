"""The reference against tiktoken, with vocabularies small enough to read."""

from __future__ import annotations

import random

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtok.reference import bpe as reference

from ..encodings import SINGLES

PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
LETTERS = "abc \n'é1<|>"
SPECIALS = {"<|a|>": 1000, "<|b|>": 1001, "|>": 1002}


def random_ranks(seed: int, size: int = 60) -> dict[bytes, int]:
    """All bytes, and tokens that join two earlier ones, as in training."""
    rng = random.Random(seed)
    ranks = dict(SINGLES)
    tokens = [bytes([byte]) for byte in LETTERS.encode()]
    while len(ranks) < 256 + size:
        token = rng.choice(tokens) + rng.choice(tokens)
        if token not in ranks and len(token) < 7:
            ranks[token] = len(ranks)
            tokens.append(token)
    return ranks


PAIRS = [
    (
        ranks,
        tiktoken.Encoding("tiny", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=SPECIALS),
    )
    for ranks in map(random_ranks, range(12))
]
TEXTS = st.text(LETTERS, max_size=25) | st.text(max_size=12)


@settings(max_examples=300)
@given(st.sampled_from(PAIRS), TEXTS)
def test_ordinary_text(pair: tuple[dict[bytes, int], tiktoken.Encoding], text: str) -> None:
    ranks, theirs = pair
    ids = reference.encode_ordinary(ranks, PATTERN, text)
    assert ids == theirs.encode_ordinary(text)
    assert ids == reference.encode_ordinary(ranks, PATTERN, text.encode())
    assert reference.decode_bytes(ranks, ids) == text.encode() == theirs.decode_bytes(ids)


@settings(max_examples=300)
@given(
    st.sampled_from(PAIRS),
    st.lists(st.sampled_from([*SPECIALS, "a", " ", "<", "<|", "|", "é"]), max_size=12).map("".join),
    st.sets(st.sampled_from(sorted(SPECIALS))),
)
def test_special_tokens(
    pair: tuple[dict[bytes, int], tiktoken.Encoding], text: str, allowed: set[str]
) -> None:
    ranks, theirs = pair
    ids = reference.encode(ranks, PATTERN, text, special_tokens=SPECIALS, allowed_special=allowed)
    assert ids == theirs.encode(text, allowed_special=allowed, disallowed_special=())
    assert reference.decode_bytes(ranks, ids, SPECIALS) == text.encode()


def test_a_byte_without_a_token() -> None:
    with pytest.raises(KeyError):
        reference.bpe({b"a": 0}, b"ab")
    with pytest.raises(KeyError):
        reference.decode_bytes({b"a": 0}, [1])


@given(st.binary(max_size=12), st.sampled_from(["strict", "replace", "surrogateescape"]))
def test_bytes_that_are_not_utf8(data: bytes, errors: str) -> None:
    ranks = PAIRS[0][0]
    try:
        text = data.decode("utf-8", errors)
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            reference.encode_ordinary(ranks, PATTERN, data, errors)
        return
    ids = reference.encode_ordinary(ranks, PATTERN, data, errors)
    assert ids == reference.encode(
        ranks, PATTERN, data, special_tokens=SPECIALS, allowed_special=(), errors=errors
    )
    if errors == "surrogateescape":
        assert reference.decode_bytes(ranks, ids) == data
        assert ids == reference.encode_ordinary(ranks, PATTERN, text, errors)
    else:
        assert reference.decode_bytes(ranks, ids) == text.encode()


def test_the_end_anchor_is_the_very_end() -> None:
    for end in ("$", r"\z"):
        assert reference.split(rf"a{end}|[$\n]|\$", "a\na$a") == ["\n", "$", "a"]
    assert reference.split(r"[]$]|\x{61}", "]$ab") == ["]", "$", "a"]


def test_stable_prefix() -> None:
    # One more byte changes every token of the pre-token.
    ranks = SINGLES | {b"de": 256, b"cd": 257, b"bc": 258, b"ab": 259}

    def encode(data: bytes) -> list[int]:
        return reference.encode_ordinary(ranks, PATTERN, data)

    assert encode(b"abcd") == [259, 257]
    assert encode(b"abcde") == [97, 258, 256]
    assert reference.stable_prefix(encode, b"abcd", [b"", b" "]) == [259, 257]
    assert reference.stable_prefix(encode, b"abcd", [b"", b" ", b"e"]) == []
    assert reference.stable_prefix(encode, b"1 abcd", [b"", b"e"]) == [49, 32]
    assert reference.stable_prefix(encode, b"a \xc3", [b"", b"\xa9", b"x"]) == [97, 32, 0xC3, 0xA9]
    assert reference.stable_prefix(encode, b"\xff", [b""]) == []
