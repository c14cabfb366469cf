"""Search, pages of tokens, and lists: each against its definition."""

from __future__ import annotations

import json

import pytest

from streamtok.answers.views import vocabulary_view

from ...conftest import PACKED, encoding_of
from ...encodings import SINGLES, make_encoding
from ...reference.test_reference import PATTERN


@pytest.mark.parametrize("name", PACKED)
def test_unreachable_tokens_and_half_characters(name):
    """`test_views_of_all_kinds.py` compares the first with their definition."""
    enc = encoding_of(name)
    listed = vocabulary_view.unreachable(enc)
    assert listed  # each of these vocabularies has some
    order = [(not one.is_utf8, one.token.id) for one in listed]
    assert order == sorted(order)
    for one in listed:
        assert json.loads(json.dumps(one.as_json()))["is_utf8"] == one.is_utf8
    halves = {one.id for one in vocabulary_view.half_characters(enc)}
    for id in vocabulary_view.every_id(enc):
        token = enc.decode_single_token_bytes(id)
        assert (id in halves) == (token.decode("utf-8", "replace").encode() != token)


def test_longest():
    enc = encoding_of("cl100k_base")
    found = vocabulary_view.longest(enc)
    assert vocabulary_view.longest(enc, 2) == found[:2]
    sizes = sorted((len(token) for token in enc.token_byte_values()), reverse=True)
    assert [len(one.bytes) for one in found] == sizes


def test_duplicates():
    enc = encoding_of("cl100k_base")
    found = vocabulary_view.duplicates(enc)
    for one in found[:200] + found[-200:]:
        assert len(one.tokens) > 1
        assert {token.bytes.decode().strip().casefold() for token in one.tokens} == {one.text}
    counts = [len(one.tokens) for one in found]
    assert counts == sorted(counts, reverse=True)
    [hello] = [one for one in found if one.text == "hello"]
    assert {"hello", "·hello", "Hello", "·Hello"} <= {token.shown for token in hello.tokens}


def test_search():
    enc = encoding_of("cl100k_base")
    found = vocabulary_view.find_text(enc, "token")
    expected = [token for token in enc.token_byte_values() if b"token" in token]
    assert sorted(one.bytes for one in found) == sorted(expected)
    assert found[0].bytes == b"token"
    assert vocabulary_view.find_bytes(enc, b"\xe6\x9d")[0].bytes == b"\xe6\x9d"
    assert vocabulary_view.find_text(enc, "no such token anywhere") == []
    assert [one.id for one in vocabulary_view.find_text(enc, "<|endoftext|>")] == [enc.eot_token]
    with pytest.raises(KeyError):
        vocabulary_view.token_page(enc, 10**6)
    assert (
        vocabulary_view.parse_hex("e6 9D b1")
        == vocabulary_view.parse_hex(" E69DB1\n")
        == b"\xe6\x9d\xb1"
    )
    for wrong in ("", "e6 9", "xx", "e 6"):
        with pytest.raises(ValueError, match="hexadecimal"):
            vocabulary_view.parse_hex(wrong)


@pytest.mark.parametrize("name", PACKED)
def test_the_merge_tree_is_made_of_tokens(name):
    enc = encoding_of(name)
    for id in [*range(0, enc.n_vocab, 4999), enc.encode_single_token(" world")]:
        try:
            page = vocabulary_view.token_page(enc, id)
        except KeyError:
            continue
        root, *_ = page.merge_tree or [None]
        if page.token.is_special:
            assert root is None
            continue
        assert (root.bytes, root.id, root.rank) == (page.token.bytes, id, page.token.rank)
        uses = [at for node in page.merge_tree for at in node.parts or ()]
        assert sorted(uses) == list(range(1, len(page.merge_tree)))  # each is a part of one
        for node in page.merge_tree:
            assert (node.parts is None) == (len(node.bytes) == 1)
            if node.parts:
                left, right = (page.merge_tree[at] for at in node.parts)
                assert left.bytes + right.bytes == node.bytes
                assert max(left.rank, right.rank) < node.rank
        assert json.loads(json.dumps(page.as_json())) == page.as_json()


def test_a_deep_merge_tree():
    ranks = SINGLES | {b"a" * size: 254 + size for size in range(2, 3000)}
    enc = make_encoding(PATTERN, ranks)
    page = vocabulary_view.token_page(enc, enc.encode_single_token(b"a" * 2999))
    assert page.merge_tree[0].bytes == b"a" * 2999
    assert all(len(node.bytes) == 1 or node.parts for node in page.merge_tree)


def test_neighbours():
    enc = encoding_of("cl100k_base")
    page = vocabulary_view.token_page(enc, enc.eot_token)
    near = [one.id for one in page.neighbours]
    assert near == [100252, 100253, 100254, 100255, 100258, 100259, 100260, 100276]
    assert [one.id for one in vocabulary_view.token_page(enc, 0).neighbours] == [1, 2, 3, 4]
