"""The reference of Hugging Face's pipeline against `tokenizers`: random files, and examples."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers
from tokenizers import pre_tokenizers as pre

from ..long.random_tokenizers.checks import case, expected_ids, theirs
from ..tokenizer_files import ODD, one_normalizer, one_pre_tokenizer
from . import tokenizer_json as reference


def added(*tokens: AddedToken, normalizer: Any = None) -> Tokenizer:
    made = Tokenizer(models.BPE({letter: id for id, letter in enumerate("abcx []\u2581")}, []))
    made.normalizer = normalizer
    made.add_tokens(list(tokens))
    return made


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    """The reference's tokens, after a comparison with the library's."""
    ids = reference.encode(json.loads(tokenizer.to_str()), text)
    assert ids == expected_ids(tokenizer, text)
    return [tokenizer.id_to_token(id) for id in ids]


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_random_files(first: int) -> None:
    compared = 0
    for seed in range(first, first + 250):
        file, texts = case(seed)
        tokenizer = theirs(file)
        for text in texts if tokenizer else ():
            expected = expected_ids(tokenizer, text)
            if "Nmt" in json.dumps(file) or '"first"' in json.dumps(file):
                continue
            found = reference.encode(file, text)
            assert expected is None or found == expected, (seed, text)
            compared += expected is not None
    assert compared > 700


@pytest.mark.parametrize("seed", range(10))
def test_normalizers_and_pre_tokenizers_alone(seed: int) -> None:
    rng = random.Random(seed)
    empty = json.loads(Tokenizer(models.BPE()).to_str())
    for _ in range(30):
        empty |= {"normalizer": one_normalizer(rng), "pre_tokenizer": one_pre_tokenizer(rng)}
        tokenizer = Tokenizer.from_str(json.dumps(empty))
        for _ in range(5):
            text = "".join(rng.choices([*ODD, "a", "b", "ab", " ", "x", "."], k=rng.randint(1, 9)))
            if empty["normalizer"]["type"] != "Nmt":
                found = reference.normalize(empty["normalizer"], text)
                assert found == tokenizer.normalizer.normalize_str(text), empty["normalizer"]
            expected = [part for part, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
            found = reference.pre_tokenize(empty["pre_tokenizer"], text)
            assert found == expected, empty["pre_tokenizer"]


def test_a_single_word_that_is_none_hides_what_is_in_it() -> None:
    tokenizer = added(
        AddedToken("abc", single_word=True), AddedToken("ab", single_word=True), AddedToken("c")
    )
    assert pieces(tokenizer, "abc ab xabc c") == [
        "abc",
        " ",
        "ab",
        " ",
        "x",
        "a",
        "b",
        "c",
        " ",
        "c",
    ]
    assert pieces(tokenizer, "abcc") == ["a", "b", "c", "c"]


def test_blanks_that_one_token_took_count_for_the_next_one_too() -> None:
    tokenizer = added(
        AddedToken("[a]", rstrip=True), AddedToken(" b"), AddedToken("x", lstrip=True)
    )
    assert pieces(tokenizer, "[a] b") == ["[a]", " b"]
    assert pieces(tokenizer, "[a]  x x") == ["[a]", "x", "x"]


def test_each_stretch_is_normalized_on_its_own() -> None:
    tokenizer = added(
        AddedToken("[a]", normalized=False),
        AddedToken("z", normalized=True),
        normalizer=normalizers.Prepend("\u2581"),
    )
    # The added token is normalized, too: it is found as "\u2581z", at the start of a stretch.
    assert pieces(tokenizer, "z[a]xz[a]z") == ["\u2581z", "[a]", "\u2581", "x", "[a]", "\u2581z"]


def test_unknown_characters_come_after_the_bytes_that_follow_them() -> None:
    vocab = {"a": 0, "<unk>": 1, "<0xC3>": 2, "<0xA9>": 3}
    tokenizer = Tokenizer(
        models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    assert pieces(tokenizer, "日本éa") == ["<0xC3>", "<0xA9>", "<unk>", "a"]


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(NotImplementedError, match="the normalizer Nmt"):
        reference.normalize({"type": "Nmt"}, "a")
    with pytest.raises(NotImplementedError, match="the pre-tokenizer FixedLength"):
        reference.pre_tokenize({"type": "FixedLength", "length": 2}, "a")


def test_its_pattern_is_that_of_byte_level() -> None:
    step = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    for text in ("it's  12 \n\n x", " é日", "'LL"):
        expected = [part for part, _ in pre.ByteLevel().pre_tokenize_str(text)]
        assert reference.pre_tokenize(step, text) == expected
