"""Merges: the fast trainer against the slow one and against other libraries."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtok._core.train import MergeLoop
from streamtok.patterns.named import PATTERNS
from streamtok.reference import bpe_training as reference_trainer
from streamtok.training.merging import TIES
from streamtok.vocabulary.byte_alphabet import BYTES_IN_ORDER, CHARACTERS, to_bytes

from ..conftest import CORPORA, corpus
from ..trained import SPLITS, counted, documents, rustbpe_tokens, tokens_of

# Against the slow trainer


@settings(max_examples=150)
@given(
    texts=documents,
    pattern=st.sampled_from(SPLITS),
    vocab_size=st.integers(256, 300),
    min_frequency=st.integers(0, 4),
    tie=st.sampled_from(TIES),
    max_token_length=st.none() | st.integers(2, 9),
)
def test_merges_equal_the_reference(texts, pattern, vocab_size, **settings):
    expected = reference_trainer.train(texts, vocab_size, pattern, **settings)
    merges = counted(texts, pattern).merges(vocab_size, **settings)
    assert merges == expected
    assert len(set(tokens_of(merges))) == 256 + len(merges)  # all tokens are different


@settings(max_examples=100)
@given(
    pieces=st.dictionaries(
        st.lists(st.sampled_from(b"aabc"), min_size=1, max_size=12).map(bytes),
        st.integers(1, 40) | st.sampled_from([2**31 - 1, 2**31, 2**33]),
        max_size=12,
    ),
    min_frequency=st.integers(0, 50),
    by_position=st.booleans(),
    as_symbols=st.booleans(),
)
def test_merges_are_those_of_the_counts(pieces, min_frequency, by_position, as_symbols):
    """Counts exceed 32 bits, and every tie rule is used, for bytes and for other symbols."""
    rows = [list(piece) for piece in pieces]
    weights = list(pieces.values())
    expected = []
    for new in range(256, 290):
        counts: Counter = Counter()
        for ids, weight in zip(rows, weights, strict=True):
            for pair in itertools.pairwise(ids):
                counts[pair] += weight
        most = max(counts.values(), default=0)
        if most < max(min_frequency, 1):
            break
        tied = [pair for pair, count in counts.items() if count == most]
        expected.append(tied[0] if by_position else min(tied))
        rows = [reference_trainer.replace_pair(ids, expected[-1], new) for ids in rows]
    loop = MergeLoop(
        np.frombuffer(b"".join(pieces), np.uint8).astype(np.uint32 if as_symbols else np.uint8),
        np.array([len(piece) for piece in pieces], np.uint32),
        np.array(weights, np.uint64),
        np.arange(256, dtype=np.uint32),
        34,
        min_frequency,
        by_position,
    )
    while loop.run(1):
        pass
    lefts, rights = loop.merges()
    assert list(zip(lefts.tolist(), rights.tolist(), strict=True)) == expected


# Against other libraries


def huggingface_merges(texts, vocab_size: int, pattern: str, min_frequency: int = 0, **settings):
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        show_progress=False,
        min_frequency=min_frequency,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        **settings,
    )
    tokenizer.train_from_iterator(texts, trainer)
    assert sorted(pre_tokenizers.ByteLevel.alphabet()) == [CHARACTERS[i] for i in BYTES_IN_ORDER]
    return [
        tuple(to_bytes(part) for part in merge)
        for merge in json.loads(tokenizer.to_str())["model"]["merges"]
    ]


# cl100k without `$`, which does not mean the very end of the text in the other libraries.
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@settings(max_examples=100)
@given(
    texts=documents, vocab_size=st.integers(256, 300), limit=st.integers(2, 9),
    least=st.integers(0, 4),
)  # fmt: skip
def test_merges_equal_both_on_random_texts(texts, vocab_size, limit, least):
    trainer = counted(texts, GPT2)
    assert tokens_of(trainer.merges(vocab_size)) == rustbpe_tokens(texts, vocab_size, GPT2)
    often = huggingface_merges(texts, vocab_size, GPT2, least)
    assert trainer.merges(vocab_size, tie="hf", min_frequency=least) == often
    shorter = huggingface_merges(texts, vocab_size, GPT2, max_token_length=limit)
    assert trainer.merges(vocab_size, tie="hf", max_token_length=limit) == shorter


def test_merges_equal_both_on_the_corpus():
    check_against_both([corpus(name)[:500_000].decode("utf-8", "ignore") for name in CORPORA])


def check_against_both(texts):
    expected = rustbpe_tokens(texts, 32_768, PATTERNS["nanochat"])
    assert tokens_of(counted(texts, "nanochat").merges(32_768)) == expected
    expected = huggingface_merges(texts[:1], 8000, GPT2)
    assert counted(texts[:1], GPT2).merges(8000, tie="hf") == expected
