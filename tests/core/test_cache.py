"""What is remembered of pieces is bounded, and changes no id: grown, swept or new."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import streamtok
from streamtok.reference import bpe as reference

from ..conftest import PACKED, encoding_of, stream_ids, twin_of
from ..encodings import make_encoding

SIZES = [*range(3, 12)] * 3 + [20, 30, 60, 200]


def words_of(rng: random.Random, count: int, alphabet: str = "abcdefghijklm") -> list[str]:
    ends = list(itertools.accumulate(rng.choices(SIZES, k=count), initial=0))
    letters = "".join(rng.choices(alphabet, k=ends[-1]))
    return [letters[start:end] for start, end in itertools.pairwise(ends)]


@pytest.mark.parametrize("name", PACKED)
def test_the_cache_is_bounded_and_changes_no_id(name: str) -> None:
    table = encoding_of(name)
    enc = make_encoding(table._pat_str, table.definition.vocabulary, name=name)
    text = " ".join(words_of(random.Random(name), 180_000))
    streamtok.set_cache_limit(0)
    enc.encode_to_numpy("a")
    least = enc.definition.encoder.cache_bytes()
    swept = enc.encode_to_numpy(text)
    assert enc.definition.encoder.cache_bytes() == least
    streamtok.set_cache_limit(3 * least)
    grown = enc.encode_to_numpy(text)
    assert least < enc.definition.encoder.cache_bytes() <= 3 * least
    np.testing.assert_array_equal(enc.encode_to_numpy(text), grown)
    assert enc.definition.encoder.cache_bytes() <= 3 * least
    np.testing.assert_array_equal(swept, grown)
    assert enc.decode(swept) == text


@pytest.mark.parametrize("count", [0, 3000])
@pytest.mark.parametrize("are_ids_ranks", [True, False])
def test_tokens_that_were_forgotten_come_back(are_ids_ranks: bool, count: int) -> None:
    """Of all sizes, reachable or not, each between sweeps that nobody asked for it before."""
    rng = random.Random(5)
    odd = [
        "".join(rng.choices("xyz", k=n)) for n in [2, 3, 7, 15, 16, 40, 64, 65, 100, 256, 257, 400]
    ]
    odd += {"".join(rng.choices("qrs", k=rng.randint(4, 20))) for _ in range(count)}
    step = 1 if are_ids_ranks else 3
    order = [*(bytes([i]) for i in range(256)), *(word.encode() for word in odd)]
    ranks = {token: step * i for i, token in enumerate(order)}
    enc = make_encoding(r"[a-z]+|[^a-z]", ranks)
    assert enc.definition.table.longest_unreachable == 400
    streamtok.set_cache_limit(0)
    text = " ".join(odd * 2)
    expected = reference.encode_ordinary(ranks, enc._pat_str, text.encode())
    assert enc.encode(text) == expected
    for _ in range(2):
        # Four times what there is room for, of short pieces and of long ones.
        enc.encode_to_numpy(" ".join(words_of(rng, 90_000, "abcdefghijklmnop")))
        assert enc.encode(text) == expected


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_what_comes_again_and_again_among_new_text(share: float) -> None:
    enc = encoding_of("r50k_base")
    rng = random.Random(share)
    streamtok.set_cache_limit(0)
    often = words_of(rng, 20_000)
    words = [rng.choice(often) if rng.random() < share else word for word in words_of(rng, 150_000)]
    ids = enc.encode_to_numpy(" ".join(words))
    enc.definition.encoder.release()
    streamtok.set_cache_limit(1 << 28)
    np.testing.assert_array_equal(enc.encode_to_numpy(" ".join(words)), ids)
    enc.definition.encoder.release()


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("different", [1, 3, 40, 2000])
def test_new_words_that_come_again_before_they_are_merged(name: str, different: int) -> None:
    """Of all sizes: one of them may share what comes of another only if they are equal."""
    rng = random.Random(f"{name} {different}")
    sizes = [*range(2, 20), 60, 64, 65, 100, 200, 240, 241, 300]
    letters = ["ab", "abcdefghijklmnop", "日本語のёж"][different % 3]
    words = [" " + "".join(rng.choices(letters, k=rng.choice(sizes))) for _ in range(different)]
    words += [word[:-1] + rng.choice(letters) for word in words]  # and their likes
    text = "".join(rng.choice(words[i // 4 :][:50]) for i in range(min(4 * len(words), 3000)))
    enc, expected = encoding_of(name), twin_of(name).encode_ordinary(text)
    for encode in (
        enc.encode_ordinary,
        lambda text: enc.encode_to_numpy(text.encode()).tolist(),
        lambda text: stream_ids(enc.stream_encoder(), [text[:900], text[900:1000], text[1000:]]),
    ):
        enc.definition.encoder.release()
        assert encode(text) == expected
        assert encode(text) == expected


@pytest.mark.parametrize("name", ["cl100k_base", "r50k_base"])
def test_words_that_change_places_are_found_again(name: str) -> None:
    """A word found away from its home goes there, and so may the one that it displaced."""
    rng = random.Random(name)
    words = [" " + "".join(rng.choices("abcdefgh", k=rng.randint(3, 9))) for _ in range(40_000)]
    enc, twin = encoding_of(name), twin_of(name)
    # One by one: what tiktoken's own threads share, ThreadSanitizer cannot see.
    ids = {word: twin.encode_ordinary(word) for word in words}
    for _ in range(4):
        chosen = rng.choices(words[: rng.choice([100, 3000, 40_000])], k=30_000)
        expected = [number for word in chosen for number in ids[word]]
        assert enc.encode_ordinary("".join(chosen)) == expected
