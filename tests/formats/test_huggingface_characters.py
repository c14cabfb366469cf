"""tokenizer.json without ByteLevel: characters merge, spaces are "▁", unknown ones become bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from ..oracles import PLAIN
from .families import family
from .reading import check, read, refused

SAMPLES = [
    *PLAIN, "▁▁ a", " ▁ ▁", "▁", " ", "a<s> b</s>c", "日本\x00▁é\u0301", "\n\n\n\n x", "",
    "a\x00aé", "<0x20>", "a\x07b",
]  # fmt: skip
# What of a vocabulary of characters and bytes is left; `test_random_tokenizers.py` makes others.
KEPT: dict[str, Callable[[str], bool]] = {
    "no mark": lambda token: "▁" not in token,  # a space becomes the bytes of "▁", not its own
    "no byte of a": lambda token: token != "<0x61>",  # as Gemma has no <0x09>: a tab is a token
    "no byte 7": lambda token: token != "<0x07>",  # nor a character: it is left out, or unknown
}


@pytest.mark.parametrize("kept", KEPT)
def test_ids(kept: str) -> None:
    value = json.loads(family("Yi").to_str())
    model = value["model"]
    tokens = sorted(filter(KEPT[kept], model["vocab"]), key=model["vocab"].__getitem__)
    model["vocab"] = {text: i for i, text in enumerate(tokens)}
    model["merges"] = [
        pair for pair in model["merges"] if {*pair, "".join(pair)} <= {*model["vocab"]}
    ]
    value["added_tokens"] = []
    has_symbols = check(value, SAMPLES).definition.vocabulary.model is not None
    assert has_symbols == (kept == "no byte 7")  # slower, so only where it must be


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
    value["model"]["vocab"]["<0x00>a"] = len(value["model"]["vocab"])
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


# Symbols: prefixes and suffixes of words, unknown tokens, bytes without a token


@pytest.mark.parametrize("is_byte_level", [False, True])
def test_offsets_of_unknown_symbols(is_byte_level):
    """An unknown symbol comes out with the next one, but is where its own character is."""
    vocab = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "\u00c3": 4}
    theirs = Tokenizer(models.BPE(vocab, [("a", "b")], unk_token="<unk>"))
    if is_byte_level:
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    theirs.add_tokens([AddedToken("XX", normalized=False)])
    enc = read(theirs)
    for text in ("a日ếab", "日", "é日XXa日bééab", "日日XX日", "xa\u0301"):
        found = theirs.encode(text)
        ids, spans = enc.encode_with_offsets(text, allowed_special="all")
        assert ids.tolist() == found.ids
        assert [*map(tuple, spans.tolist())] == found.offsets
        stream = enc.stream_encoder(allowed_special="all")
        parts = [stream.encode_with_offsets(char) for char in text]
        parts.append(stream.encode_with_offsets("", final=True))
        assert np.array_equal(np.concatenate([part[1] for part in parts]), spans)


HIDDEN = [["h", "e"], ["t", "h"], ["th", "e"]]  # "the" becomes t and he


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"merges": [["t", "h"], ["t", "zz"]]}, "'zz' is not in the vocabulary"),
        ({"unk_token": "<unk>"}, "unk_token '<unk>' is not in the vocabulary"),
        ({"vocab": {"t": 0, "h": 0}}, "id 0 is given twice: to b'h' and to b't'"),
        (
            {"merges": [["t", "he"], ["th", "e"], *HIDDEN], "end_of_word_suffix": "e"},
            "of other symbols",
        ),
    ],
)
def test_refusals_of_symbols(changes, message):
    vocab = {text: id for id, text in enumerate(["t", "h", "e", "th", "the", " "])}
    file = json.loads(Tokenizer(models.BPE(vocab, [("t", "h"), ("th", "e")])).to_str())
    vocab = file["model"]["vocab"] | {"he": 6} | changes.get("vocab", {})
    file["model"] |= changes | {"vocab": vocab}
    refused(file, message)
