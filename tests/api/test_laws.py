"""The law over random vocabularies, patterns, texts and cuts, against the slow reference."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from streamtok.reference import bpe as reference
from streamtok.reference.heap_merge import bpe_by_heap

from ..conftest import LLAMA3_PATTERN, stream_ids
from ..encodings import SINGLES, make_encoding

PATTERNS = [
    r"[\s\S]+",  # the whole text is one piece
    r" ?\p{L}+|\s+(?!\S)|\s+|[^\s\p{L}]+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    LLAMA3_PATTERN,
    r"\w+",  # leaves characters out
    r"a+b?|[^a]",
    r"(?:ab)+|a|[^a]",  # looks one character ahead
]
ALPHABET = b"aaaabbbc \n'1\xc3\xa9"


@st.composite
def rank_tables(draw):
    """Tables with unreachable tokens, holes in the ranks, merges that can happen in two ways."""
    tokens = draw(
        st.lists(
            st.lists(st.sampled_from(ALPHABET), min_size=2, max_size=7).map(bytes),
            max_size=40,
            unique=True,
        )
    )
    singles = [bytes([i]) for i in range(256)]
    where = draw(st.sampled_from(["before", "after"]))
    order = tokens + singles if where == "before" else singles + tokens
    step = draw(st.integers(1, 3))
    return {token: i * step for i, token in enumerate(order)}


TEXTS = st.one_of(
    st.lists(st.sampled_from(ALPHABET), max_size=60).map(bytes),
    st.tuples(st.sampled_from([b"a", b"ab", b" ", b"\n", b"aab", b"abc"]), st.integers(0, 60)).map(
        lambda t: t[0] * t[1]
    ),
)


@settings(max_examples=120)
@given(
    ranks=rank_tables(),
    pattern=st.sampled_from(PATTERNS),
    data=TEXTS,
    cuts=st.lists(st.integers(0, 120), max_size=6),
    errors=st.sampled_from(["replace", "surrogateescape"]),
)
def test_streams_equal_the_reference(ranks, pattern, data, cuts, errors):
    enc = make_encoding(pattern, ranks)
    expected = reference.encode_ordinary(ranks, pattern, data, errors)
    assert enc.encode_ordinary(data, errors=errors) == expected
    assert enc.count(data, errors=errors) == len(expected)
    bounds = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    chunks = [data[a:b] for a, b in itertools.pairwise(bounds)]
    assert stream_ids(enc.stream_encoder(errors=errors), chunks) == expected
    assert stream_ids(enc.stream_encoder(errors=errors), [bytes([b]) for b in data]) == expected


@settings(max_examples=60)
@given(
    ranks=rank_tables(),
    unit=st.lists(st.sampled_from(b"aabbc"), min_size=1, max_size=40).map(bytes),
    size=st.integers(300, 14_000),
    chunk=st.integers(1, 6000),
)
def test_long_pretokens_equal_the_heap(ranks, unit, size, chunk):
    """Pieces beyond the window, committed while they are open."""
    enc = make_encoding(r"[\s\S]+", ranks)
    data = (unit * (size // len(unit) + 1))[:size]
    expected = [ranks[data]] if data in ranks else bpe_by_heap(ranks, data)
    assert enc.encode_ordinary(data) == expected
    chunks = [data[i : i + chunk] for i in range(0, len(data), chunk)]
    assert stream_ids(enc.stream_encoder(), chunks) == expected


@settings(max_examples=40)
@given(ranks=rank_tables(), data=TEXTS)
def test_ids_given_out_are_the_longest_certain_beginning_or_less(ranks, data):
    enc = make_encoding(PATTERNS[1], ranks)
    stream = enc.stream_encoder(errors="surrogateescape")
    given_out = stream.encode(data)
    more = [b"", b"a", b"b", b" ", b"\n", b"aaaa", b"\xa9", b"1"]
    certain = reference.stable_prefix(lambda b: enc.encode(b, errors="surrogateescape"), data, more)
    assert certain[: len(given_out)] == given_out


def test_an_unreachable_long_token_is_waited_for():
    singles = dict(SINGLES)
    long = b"ab" * 5000
    enc = make_encoding(r"[ab]+|[^ab]", {**singles, long: 300})
    assert enc.definition.table.longest_unreachable == len(long)
    for data in [long, long + b"a", long[:-1], long + b" ", long * 2]:
        expected = reference.encode_ordinary({**singles, long: 300}, r"[ab]+|[^ab]", data)
        assert enc.encode(data) == expected
        chunks = [data[i : i + 777] for i in range(0, len(data), 777)]
        assert stream_ids(enc.stream_encoder(), chunks) == expected
