"""Vocabularies that grow and shrink."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok import Encoding, Trainer, Vocabulary
from streamtok.engines.rules import TextRules
from streamtok.engines.template import Template
from streamtok.formats.merge_lists import to_merges
from streamtok.reference.bpe import bpe_by_merges, encode_pretoken, split
from streamtok.reference.bpe_training import next_merges, replace_pair

from ..conftest import encoding_of
from ..encodings import SINGLES, from_merges, make_encoding
from ..trained import SPLITS, counted, documents

PATTERN = r"[a-c]+|[^a-c]"
texts = st.lists(st.text(st.sampled_from("aabbc d"), max_size=30), max_size=4)
few_tokens = st.lists(
    st.text(st.sampled_from("abc"), min_size=2, max_size=5), max_size=10, unique=True
)


class Made(NamedTuple):
    """An encoding, and how to encode a pre-token slowly."""

    encoding: Encoding
    ids: dict[bytes, int]
    merges: list[tuple[bytes, bytes]] | None  # None: any two tokens that form a third
    ignore_merges: bool

    def slow(self, pretoken: bytes) -> list[int]:
        if self.merges is None:
            return encode_pretoken(self.ids, pretoken)
        return bpe_by_merges(self.ids, self.merges, pretoken, self.ignore_merges)

    def listed(self) -> list[tuple[bytes, bytes]]:
        if self.merges is None:
            return to_merges(self.encoding.definition.vocabulary)
        return self.merges


@st.composite
def encodings(draw) -> Made:
    """Rank tables and lists of merges, with tokens that no merges make, special tokens and gaps."""
    tokens = [token.encode() for token in draw(few_tokens)]
    numbers = draw(st.permutations(range(300, 300 + len(tokens))))
    is_list, ignores = draw(st.booleans()), draw(st.booleans())
    special = draw(st.dictionaries(st.sampled_from(["<x>", "<y>"]), st.integers(256, 299)))
    special = {text: id for id, text in {id: text for text, id in special.items()}.items()}
    ids = SINGLES | dict(zip(tokens, numbers if is_list else sorted(numbers), strict=True))
    merges = None
    vocabulary: Any = ids
    if is_list:
        pairs = [(t[:i], t[i:]) for t in tokens for i in range(1, len(t))]
        pairs = [pair for pair in pairs if pair[0] in ids and pair[1] in ids]
        merges = draw(st.permutations(pairs))[: draw(st.integers(0, len(pairs)))]
        vocabulary = from_merges(ids, merges, ignore_merges=ignores)
    return Made(make_encoding(PATTERN, vocabulary, special), ids, merges, ignores)


# More merges


@settings(max_examples=60)
@given(
    texts=documents, pattern=st.sampled_from(SPLITS), sizes=st.tuples(*[st.integers(256, 300)] * 2)
)
def test_extending_is_training_on(texts, pattern, sizes):
    """On the same counts, a vocabulary that was trained in two steps is that of one step."""
    trainer = counted(texts, pattern)
    less, more = sorted(sizes)
    first = trainer.train(less)
    whole = trainer.train(max(more, first.n_vocab))
    assert trainer.extend(first, max(more, first.n_vocab)).digest == whole.digest


@settings(max_examples=100)
@given(made=encodings(), texts=texts, others=texts, n=st.integers(0, 12))
def test_extended_vocabularies_equal_the_reference(made, texts, others, n):
    """Old ids stay. New merges are those that the slow trainer chooses where the old ones end."""
    old = made.encoding
    pretokens = [part.encode() for text in texts for part in split(PATTERN, text)]
    new_ids = range(old.n_vocab, old.n_vocab + n)
    merges = next_merges(
        [made.slow(p) for p in pretokens], {id: token for token, id in made.ids.items()}, new_ids
    )
    ids, fresh = dict(made.ids), iter(new_ids)
    for left, right in merges:
        if left + right not in ids:  # or no old merges make it
            ids[left + right] = next(fresh)
    new = counted(texts, PATTERN).extend(old, old.n_vocab + n)
    assert new.max_token_value == max(old.max_token_value, *ids.values())
    for token, id in ids.items():
        assert new.decode_single_token_bytes(id) == token
    for token in old.definition.vocabulary.to_list():
        assert new.encode_single_token(token) == old.encode_single_token(token)
    assert new._special_tokens == old._special_tokens
    for text in (*texts, *others):
        expected = []
        for pretoken in split(PATTERN, text):
            row = made.slow(pretoken.encode())
            for left, right in merges:
                row = replace_pair(row, (ids[left], ids[right]), ids[left + right])
            expected += row
        assert new.encode(text) == expected


# Special tokens


def test_special_tokens_get_the_next_free_ids():
    old = make_encoding(special={"<x>": 256})
    new = old.with_special_tokens({"<a>": None, "<b>": 257, "<c>": None, "<x>": None, "<d>": 1000})
    expected = {"<x>": 256, "<a>": 1001, "<b>": 257, "<c>": 1002, "<d>": 1000}
    assert (new._special_tokens, new.n_vocab) == (expected, 1003)
    assert new.encode("y<c>", allowed_special="all") == [121, 1002]
    assert (old.special_tokens_set, old.encode_ordinary("<c>")) == ({"<x>"}, [60, 99, 62])
    for wrong, message in (
        ({"<a>": 256}, "have id 256: another token has it"),
        ({"<a>": 5}, "have id 5: another"),
        ({"<a>": 300, "<b>": 300}, "have id 300: another"),
        ({"<x>": 300}, "have id 300: it has id 256"),
        ({"": None}, "non-empty"),
        ({"a": None}, "is a token of the text"),
        ({"<a>": -1}, "must be in 0"),
    ):
        with pytest.raises(ValueError, match=message):
            old.with_special_tokens(wrong)


# Fewer tokens


@settings(max_examples=200)
@given(made=encodings(), texts=texts, data=st.data())
def test_pruned_vocabularies_equal_the_reference(made, texts, data):
    old = made.encoding
    known = sorted({*made.ids.values(), *old._special_tokens.values()})
    keep = data.draw(st.sets(st.sampled_from(known)))
    way = data.draw(st.sampled_from(["keep", "counts", "array"]))
    counts = Counter(keep)
    if way == "keep":
        pruned = old.prune(keep=keep)
    elif way == "counts":
        pruned = old.prune(min_count=counts | {known[-1]: counts[known[-1]]})
    else:
        pruned = old.prune(min_count=np.bincount([*keep], minlength=old.n_vocab))
    new, old_ids = pruned
    assert old_ids.dtype == np.uint32
    assert (np.diff(old_ids.astype(int)) > 0).all()
    assert keep | {*range(256)} | {*old._special_tokens.values()} <= {*old_ids.tolist()}
    assert new.n_vocab == len(old_ids)
    for id, old_id in enumerate(old_ids.tolist()):
        assert new.decode_single_token_bytes(id) == old.decode_single_token_bytes(old_id)
    for text, id in new._special_tokens.items():
        assert old_ids[id] == old._special_tokens[text]
    ids = {t: i for i, t in enumerate(new.decode_tokens_bytes(range(new.n_vocab))) if t in made.ids}
    merges = [(a, b) for a, b in made.listed() if {a, b, a + b} <= ids.keys()]
    ignores = made.merges is None or made.ignore_merges
    for text in texts:
        pretokens = [part.encode() for part in split(PATTERN, text)]
        expected = [i for p in pretokens for i in bpe_by_merges(ids, merges, p, ignores)]
        assert new.encode(text) == expected
    # Every kept token is reached by the merges that reached it before.
    assert to_merges(new.definition.vocabulary) == [
        pair for pair in to_merges(old.definition.vocabulary) if b"".join(pair) in ids
    ]


@settings(max_examples=100)
@given(made=encodings(), size=st.integers(256, 310))
def test_pruning_to_a_size_keeps_the_first_merges(made, size):
    old = made.encoding
    least = 256 + len(old._special_tokens)
    if size < least:
        with pytest.raises(ValueError, match=f"size {size} is too small"):
            old.prune(size=size)
        return
    pruned = old.prune(size=size)
    tokens = old.definition.vocabulary.to_list()
    parts = {left + right: {left, right} for left, right in to_merges(old.definition.vocabulary)}
    expected, fitting = {*SINGLES}, {*SINGLES}
    for token in [token for token in tokens if len(token) > 1]:
        needed = {token}
        while more := {part for each in needed for part in parts.get(each, ())} - needed:
            needed |= more
        expected |= needed
        if len(expected) + least - 256 <= size:
            fitting = {*expected}
    assert {*pruned.encoding.definition.vocabulary.to_list()} == fitting


def test_what_no_merges_made_no_merges_make():
    """A rank table would make "abcd" of "ab" and "cd" once "bc" does not prevent it."""
    ranks = SINGLES | {b"bc": 256, b"ab": 257, b"cd": 258, b"abcd": 259}
    new = make_encoding(r"\w+", ranks).prune(keep=[257, 258, 259]).encoding
    assert new.decode_tokens_bytes(new.encode("abcda")) == [b"ab", b"cd", b"a"]
    assert new.encode("abcd") == [258]


def test_pruning_keeps_all_that_ids_mean():
    """Added tokens, the template and the ids that end texts have their new ids."""
    old = make_encoding(
        special={"<s>": 500, "</s>": 700},
        rules=TextRules(added_tokens=(("<tool>", 600),)),
        template=Template((500,), (700,)),
    )
    old.definition.model_settings = old.definition.model_settings._replace(eos=(700, 10))
    new, old_ids = old.prune(keep=[])
    assert old_ids.tolist() == [*range(256), 500, 600, 700]
    assert new.encode("a<tool>", add_special_tokens=True) == [256, 97, 257, 258]
    assert new.eos_tokens == (258, 10)


# What is refused


def test_arguments():
    enc, trainer = encoding_of("gpt2"), Trainer("gpt2")
    for wrong in ({}, {"keep": [1], "size": 300}):
        with pytest.raises(TypeError, match="one of keep, min_count and size"):
            enc.prune(**wrong)
    with pytest.raises(KeyError, match="50257"):
        enc.prune(keep=[50_257])
    with pytest.raises(ValueError, match=r"at least 50257, the encoding's n_vocab: it is 1000"):
        trainer.extend(enc, 1000)
    with pytest.raises(ValueError, match=r"another pattern than that of o200k_base"):
        trainer.extend(encoding_of("o200k_base"), 300_000)
    whole = counted(["<|endoftext|>" * 9], r"[\s\S]+")
    special = make_encoding(r"[\s\S]+", special={"<|endoftext|>": 256})
    with pytest.raises(streamtok.VocabularyError, match="is a token of the text, too"):
        whole.extend(special, 300)


def test_other_models_are_refused_by_name():
    words = counted(["low lower"], "bert").train_wordpiece(40)
    merges = Vocabulary.from_ranks(SINGLES)
    characters = make_encoding(
        ranks=Vocabulary(
            merges.tokens, merges.offsets, merges.ids, lefts=np.zeros(256, np.uint32),
            byte_ids=np.arange(256, dtype=np.uint32),
        )
    )  # fmt: skip
    for encoding, kind in ((words, "WordPiece"), (characters, "BPE of characters")):
        for call in (
            lambda encoding=encoding: Trainer("bert").extend(encoding, 300),
            lambda encoding=encoding: encoding.with_special_tokens({"<x>": None}),
            lambda encoding=encoding: encoding.prune(size=300),
        ):
            with pytest.raises(streamtok.VocabularyError, match=f"is a model of {kind}"):
                call()
