"""Lists of merges against the slow reference: random lists, ids in any order, any chunks."""

from __future__ import annotations

import itertools
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok import StateError, VocabularyError
from streamtok.formats.merge_lists import (
    to_merges,
    without_unreachable_tokens,
)
from streamtok.reference import bpe as reference
from streamtok.vocabulary.table import Vocabulary

from ..conftest import stream_ids
from ..encodings import SINGLES, from_merges, make_encoding

WHOLE = r"[\s\S]+"
PATTERNS = [WHOLE, r"[^\s\p{N}]+|\s+|\p{N}", r" ?\p{L}+|\s+(?!\S)|\s+|[^\s\p{L}]+"]
LETTERS = b"aaabbc d1"


@st.composite
def merge_lists(draw):
    """Tokens with ids in any order, and merges: shuffled, duplicated, several for a token."""
    parts = [bytes([byte]) for byte in sorted(set(LETTERS))]
    merges: list[tuple[bytes, bytes]] = []
    for _ in range(draw(st.integers(0, 25))):
        left, right = draw(st.sampled_from(parts)), draw(st.sampled_from(parts))
        if len(left + right) <= 9:
            merges.append((left, right))
            parts.append(left + right)
    made = {left + right for left, right in merges}
    # Another pair that makes the same token, if both parts are tokens.
    for token in sorted(made):
        for cut in range(1, len(token)):
            pair = token[:cut], token[cut:]
            if pair[0] in parts and pair[1] in parts and draw(st.integers(0, 3)) == 0:
                merges.append(pair)
    if draw(st.booleans()):
        merges = draw(st.permutations(merges))
    lost = draw(st.lists(st.lists(st.sampled_from(LETTERS), min_size=2, max_size=6).map(bytes)))
    tokens = {bytes([byte]) for byte in range(256)} | made | set(lost)
    numbers = (
        draw(st.permutations(range(len(tokens)))) if draw(st.booleans()) else itertools.count()
    )
    return dict(zip(sorted(tokens), numbers, strict=False)), merges


TEXTS = st.one_of(
    st.lists(st.sampled_from(LETTERS), max_size=70).map(bytes),
    st.tuples(st.sampled_from([b"a", b"ab", b"aab", b"abc", b"b "]), st.integers(0, 60)).map(
        lambda pair: pair[0] * pair[1]
    ),
)


def expected_ids(ids, merges, pattern, data, ignore_merges):
    parts = reference.split(pattern, data.decode())
    rows = [reference.bpe_by_merges(ids, merges, p.encode(), ignore_merges) for p in parts]
    return [token for row in rows for token in row]


@settings(max_examples=150)
@given(
    listed=merge_lists(),
    pattern=st.sampled_from(PATTERNS),
    data=TEXTS,
    ignore_merges=st.booleans(),
    cuts=st.lists(st.integers(0, 120), max_size=6),
)
def test_whole_texts_and_streams_equal_the_reference(listed, pattern, data, ignore_merges, cuts):
    ids, merges = listed
    vocabulary = from_merges(ids, merges, ignore_merges=ignore_merges)
    enc = make_encoding(pattern, vocabulary)
    expected = expected_ids(ids, merges, pattern, data, ignore_merges)
    assert enc.encode(data) == expected
    assert enc.count(data) == len(expected)
    assert enc.decode_bytes(expected) == data
    bounds = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    chunks = [data[a:b] for a, b in itertools.pairwise(bounds)]
    assert stream_ids(enc.stream_encoder(), chunks) == expected
    assert stream_ids(enc.stream_encoder(), [bytes([b]) for b in data]) == expected
    for token, number in ids.items():
        assert enc.decode_single_token_bytes(number) == token
        assert enc.encode_single_token(token) == number


@settings(max_examples=80)
@given(listed=merge_lists())
def test_a_list_written_again_is_equivalent(listed):
    ids, merges = listed
    vocabulary = from_merges(ids, merges, ignore_merges=False)
    again = from_merges(ids, to_merges(vocabulary), ignore_merges=False)
    assert again == vocabulary
    assert again.digest == vocabulary.digest
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary


def test_an_equivalent_rank_table_is_found():
    for name in ("r50k_base", "cl100k_base"):
        table = streamtok.get_encoding(name).definition.vocabulary
        assert from_merges(table.to_ranks(), to_merges(table), ignore_merges=True) == table


def test_digests_and_states_depend_on_the_merges():
    ids = SINGLES | {b"ab": 256, b"bc": 257, b"abc": 258}
    makings = [
        [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c")],
        [(b"a", b"b"), (b"b", b"c"), (b"a", b"bc")],
        [(b"b", b"c"), (b"a", b"b"), (b"a", b"bc")],
        [(b"b", b"c"), (b"a", b"b")],
    ]
    encodings = [
        make_encoding(WHOLE, from_merges(ids, merges, ignore_merges=False)) for merges in makings
    ]
    assert [enc.encode("abc") for enc in encodings] == [[258], [256, 99], [258], [97, 257]]
    assert len({enc.digest for enc in encodings}) == len(encodings)
    state = encodings[0].stream_encoder().getstate()
    for enc in encodings[1:]:
        with pytest.raises(StateError):
            enc.stream_encoder().setstate(state)
        assert pickle.loads(pickle.dumps(enc)).encode("abc") == enc.encode("abc")


def test_ranks_cannot_express_every_list():
    ids = SINGLES | {b"ab": 257, b"bc": 256}
    table = from_merges(ids, [(b"a", b"b"), (b"b", b"c")], ignore_merges=False)
    assert not table.is_rank_table
    with pytest.raises(VocabularyError, match="ranks cannot express"):
        table.to_ranks()


def test_unreachable_tokens():
    ranks = SINGLES | {b"xyz": 256, b"ab": 257}
    table = without_unreachable_tokens(Vocabulary.from_ranks(ranks))
    assert table.decode_only == {256: b"xyz"}
    assert len(table) == 257
    assert without_unreachable_tokens(table) is table


@pytest.mark.parametrize(
    ("ids", "merges", "message"),
    [
        (SINGLES | {b"abc": 300}, [(b"a", b"bc")], "'bc' is not in the vocabulary"),
        (SINGLES | {b"": 300}, [], "the token of id 300 has 0 bytes"),
        (SINGLES | {b"ab": -1}, [], "the id of b'ab' is -1"),
        (SINGLES | {b"ab": 2**32 - 1}, [], "the id of b'ab' is 4294967295"),
        (SINGLES | {b"a" * 65536: 300}, [], "has 65536 bytes"),
    ],
)
def test_unsound_lists_are_refused(ids, merges, message):
    with pytest.raises(VocabularyError, match=message.replace("(", r"\(")):
        from_merges(ids, merges, ignore_merges=False)
