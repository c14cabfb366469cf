"""tokenizer.json without ByteLevel: characters merge, spaces are "▁", unknown ones become bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer

from ..oracles import PLAIN
from .families import family
from .reading import check, read, refused

SPACES = ["▁▁ a", " ▁ ▁", "▁", " ", "a<s> b</s>c", "<s><s>", "日本\x00▁é\u0301", "\n\n\n\n x", ""]


def random_samples(letters: str) -> list[str]:
    rng = random.Random(letters)
    return ["".join(rng.choices(letters, k=40)) for _ in range(60)]


def add(value: dict[str, Any], *tokens: str) -> None:
    vocab = value["model"]["vocab"]
    for token in tokens:
        vocab.setdefault(token, len(vocab))


def keep(value: dict[str, Any], is_kept: Callable[[str], bool]) -> None:
    """Leave out all other tokens, and the added ones."""
    model = value["model"]
    kept = sorted(filter(is_kept, model["vocab"]), key=model["vocab"].__getitem__)
    model["vocab"] = {text: i for i, text in enumerate(kept)}
    model["merges"] = [
        pair for pair in model["merges"] if {*pair, "".join(pair)} <= {*model["vocab"]}
    ]
    value["added_tokens"] = []


def no_mark(value: dict[str, Any]) -> None:
    """A space becomes the bytes of "▁", not its own."""
    keep(value, lambda token: "▁" not in token)


def a_byte_whose_character_is_a_token(value: dict[str, Any]) -> None:
    """Gemma has no <0x09>, because a tab is a token."""
    keep(value, lambda token: token != "<0x61>")


def a_byte_that_is_no_token(value: dict[str, Any]) -> None:
    """Neither is its character: it is left out, or unknown."""
    keep(value, lambda token: token != "<0x07>")


CHANGES = [no_mark, a_byte_whose_character_is_a_token, a_byte_that_is_no_token]


@pytest.mark.parametrize("change", CHANGES)
def test_ids(change: Callable[[dict[str, Any]], None]) -> None:
    """`test_random_tokenizers.py` makes other changes."""
    value = json.loads(family("Yi").to_str())
    change(value)
    samples = ["a\x00aé", "<0x20>", "a\x07b"]
    samples += [*PLAIN, *SPACES, *random_samples("> <é▁a\n"), *random_samples("a b▁")]
    enc = check(value, samples)
    has_symbols = enc.definition.vocabulary.model is not None  # slower, so only where it must be
    assert has_symbols == (change is a_byte_that_is_no_token)


def test_marks_that_decoding_leaves():
    value = json.loads(family("Yi").to_str()) | {"decoder": {"type": "ByteFallback"}}
    enc = read(value)
    assert enc.decode(enc.encode("a b")) == "a▁b"


FIRST = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}


def test_an_added_token_inside_a_character():
    """What is behind the added token 1 in a ½ gets a mark, too: tokenizers goes by offsets."""
    value = json.loads(family("Yi").to_str())
    value |= {"normalizer": {"type": "NFKC"}, "pre_tokenizer": FIRST}
    theirs = Tokenizer.from_str(json.dumps(value))
    theirs.add_tokens([AddedToken("1", normalized=True)])
    assert theirs.encode("½", add_special_tokens=False).tokens[:2] == ["1", "▁"]
    assert "▁" not in theirs.encode("1⁄2", add_special_tokens=False).tokens
    refused(json.loads(theirs.to_str()), "the scheme first is not supported with a normalizer")
    theirs.normalizer = None
    assert read(theirs).encode("1")


def test_what_is_put_before_a_text_that_lost_its_beginning():
    """It does not begin the text, says tokenizers, and gets no mark."""
    strip = {"type": "Strip", "strip_left": True, "strip_right": False}
    steps = [strip, {"type": "Prepend", "prepend": "a"}]
    value = json.loads(family("Yi").to_str()) | {
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": FIRST,
    }
    theirs = Tokenizer.from_str(json.dumps(value))
    tokens = [theirs.encode(text, add_special_tokens=False).tokens for text in ("b", " b")]
    assert ["".join(found) for found in tokens] == ["▁ab", "ab"]
    refused(value, "first is not supported with a normalizer")


def of_model(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda value: value["model"].update(changes)


def of_decoder(*steps: dict[str, Any]) -> Callable[[dict[str, Any]], object]:
    return lambda value: value.update(decoder={"type": "Sequence", "decoders": [*steps]})


def a_merge_that_makes_a_byte(value: dict[str, Any]) -> None:
    add(value, "<0x00>a")
    value["model"]["merges"] = [["<0x00>", "a"]]


REPLACE = {"type": "Replace", "pattern": {"String": "a"}, "content": " "}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (of_model(unk_token="<none>", byte_fallback=False), "'<none>' is not in the vocabulary"),
        (a_merge_that_makes_a_byte, "take or make '<0x00>'"),
        (of_decoder({"type": "Strip", "content": " ", "start": 1, "stop": 0}), "after Fuse"),
        (of_decoder({"type": "Fuse"}, REPLACE), "decoder Replace is"),
        (of_decoder({"type": "Metaspace", "replacement": "_"}), "Metaspace is supported with"),
    ],
)
def test_refusals(change: Callable[[dict[str, Any]], object], message: str) -> None:
    value = json.loads(family("Yi").to_str())
    change(value)
    refused(value, message)
