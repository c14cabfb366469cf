"""tokenizer.json without ByteLevel: characters merge, spaces are "▁", unknown ones become bytes."""

from __future__ import annotations

import json
import random

import pytest
from tokenizers import AddedToken, Tokenizer

import streamtok
from streamtok import formats
from streamtok.formats.character_merges import CUT_BEFORE_SPACES
from streamtok.patterns.named import WHOLE_TEXT_PATTERN

from ..oracles import PLAIN, assert_same, refuses, write
from .families import family, ids_of

SPACES = ["▁▁ a", " ▁ ▁", "▁", " ", "a<s> b</s>c", "<s><s>", "日本\x00▁é\u0301", "\n\n\n\n x", ""]


def load(value: str, tmp_path) -> streamtok.Encoding:
    return formats.load_huggingface(write(tmp_path / "tokenizer.json", value))


def changed(name: str = "Yi", **changes) -> dict:
    value = json.loads(family(name).to_str())
    value["model"] |= changes
    return value


def test_tokens_that_are_cut_inside(tmp_path):
    """A token with a space inside, and one of spaces and letters: no cut may cross them."""
    value = changed()
    vocab, merges = value["model"]["vocab"], value["model"]["merges"]
    for left, right in ((">", "▁"), (">▁", "<"), ("▁", "▁"), ("é", "▁"), ("é▁", "é")):
        for token in (left, right, left + right):
            vocab.setdefault(token, len(vocab))
        merges.insert(0, [left, right])
    theirs = Tokenizer.from_str(json.dumps(value))
    enc = load(json.dumps(value), tmp_path)
    assert enc._pat_str not in (CUT_BEFORE_SPACES, WHOLE_TEXT_PATTERN)
    rng = random.Random(5)
    samples = ["".join(rng.choices("> <é▁a", k=40)) for _ in range(60)]
    assert_same(enc, ids_of(theirs), [*PLAIN, *samples], round_trip=False)


def test_literal_spaces(tmp_path):
    """No text has one, if all become "▁"; otherwise they are kept apart from "▁"."""
    value = changed()
    vocab = value["model"]["vocab"]
    for text in (" ", "a ", " b"):
        vocab[text] = len(vocab)
    value["model"]["merges"] += [["a", " "], [" ", "b"]]
    samples = [*PLAIN, *SPACES, "a b", "a  b▁b"]
    for normalizer in (value["normalizer"], None):
        value["normalizer"] = normalizer
        theirs = Tokenizer.from_str(json.dumps(value))
        enc = load(json.dumps(value), tmp_path)
        assert_same(enc, ids_of(theirs), samples, allowed_special="all", round_trip=False)
        assert enc.decode([vocab["a "], vocab[" b"]]) == "a  b"


def test_marks_that_decoding_leaves(tmp_path):
    value = changed()
    value["decoder"] = {"type": "ByteFallback"}
    theirs = Tokenizer.from_str(json.dumps(value))
    enc = load(json.dumps(value), tmp_path)
    samples = [*PLAIN, *SPACES]
    assert_same(enc, ids_of(theirs), samples, allowed_special="all", round_trip=False)
    assert enc.decode(enc.encode("a b")) == "a▁b"


def test_spaces_that_come_after_the_marks(tmp_path):
    """A space that a later step puts in is no mark."""
    value = changed()
    mark = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    put = {"type": "Replace", "pattern": {"String": "\n"}, "content": " \n"}
    value["normalizer"] = {"type": "Sequence", "normalizers": [mark, put]}
    theirs = Tokenizer.from_str(json.dumps(value))
    enc = load(json.dumps(value), tmp_path)
    assert_same(enc, ids_of(theirs), ["\n", "a b\n\n c", *PLAIN], round_trip=False)


def test_a_vocabulary_without_the_mark(tmp_path):
    """A space becomes the bytes of "▁", not its own."""
    value = changed("Llama 2")
    vocab = value["model"]["vocab"]
    kept = sorted((text for text in vocab if "▁" not in text), key=vocab.__getitem__)
    value["model"]["vocab"] = {text: i for i, text in enumerate(kept)}
    value["model"]["merges"] = [m for m in value["model"]["merges"] if "▁" not in "".join(m)]
    value["added_tokens"] = []
    theirs = Tokenizer.from_str(json.dumps(value))
    assert_same(load(json.dumps(value), tmp_path), ids_of(theirs), PLAIN, round_trip=False)


@pytest.mark.parametrize("more", [[], [{"type": "Lowercase"}, {"type": "NFC"}]])
def test_the_order_of_steps(more, tmp_path):
    value = changed("Llama 2")
    value["normalizer"]["normalizers"].reverse()
    value["normalizer"]["normalizers"] += more
    theirs = Tokenizer.from_str(json.dumps(value))
    enc = load(json.dumps(value), tmp_path)
    assert_same(enc, ids_of(theirs), [*PLAIN, *SPACES], allowed_special="all", round_trip=False)
    assert enc.decode(enc.encode("a b")) == theirs.decode(enc.encode("a b")) == "a b"


def test_ignored_merges(tmp_path):
    value = changed("Metaspace never", ignore_merges=True)
    vocab = value["model"]["vocab"]
    for text in ("▁unreachable", "x", "日本語x", "▁"):
        vocab.setdefault(text, len(vocab))
    theirs = Tokenizer.from_str(json.dumps(value))
    enc = load(json.dumps(value), tmp_path)
    assert enc.encode("<0x41>") == theirs.encode("<0x41>", add_special_tokens=False).ids
    metaspace = value["pre_tokenizer"]
    punctuation = {"type": "Punctuation", "behavior": "Isolated"}
    value["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [metaspace, punctuation]}
    theirs = Tokenizer.from_str(json.dumps(value))
    enc = load(json.dumps(value), tmp_path)
    samples = [*PLAIN, " unreachable", "x unreachable y", "日本語x 日本語x", "<0x20>"]
    assert_same(enc, ids_of(theirs), samples, round_trip=False)


def test_a_byte_whose_character_is_a_token(tmp_path):
    """Gemma has no <0x09>, because a tab is a token."""
    value = changed()
    vocab = value["model"]["vocab"]
    assert "a" in vocab
    vocab.pop("<0x61>")
    kept = sorted(vocab, key=vocab.__getitem__)
    value["model"]["vocab"] = {text: i for i, text in enumerate(kept)}
    value["added_tokens"] = []
    theirs = Tokenizer.from_str(json.dumps(value))
    enc = load(json.dumps(value), tmp_path)
    assert_same(enc, ids_of(theirs), [*PLAIN, "a\x00aé"], round_trip=False)


def test_added_tokens_that_are_bytes(tmp_path):
    theirs = family("Yi")
    theirs.add_tokens([AddedToken(text, normalized=False) for text in ("<0x0A>", "<0xE6>")])
    enc = load(theirs.to_str(), tmp_path)
    for text in ("<0x0A>\n\x01", "\u6b79\x00", *PLAIN):
        ids = ids_of(theirs)(text)
        assert enc.encode(text) == ids
        assert enc.decode(ids) == theirs.decode(ids)


def test_added_tokens_that_merges_make_too(tmp_path):
    """Gemma's runs of newlines and of "▁" are tokens of both kinds."""
    theirs = family("Yi")
    made = [t for t in theirs.get_vocab() if len(t) > 1 and set(t) <= {"▁", "\n", "=", "a"}]
    assert made
    theirs.add_tokens([AddedToken(text, normalized=False) for text in (*made, "▁▁▁", "\n\n")])
    theirs.add_tokens([AddedToken("  x", normalized=True), AddedToken("▁y", normalized=True)])
    rng = random.Random(3)
    samples = ["".join(rng.choices("▁\n =a xyz", k=30)) for _ in range(60)]
    enc = load(theirs.to_str(), tmp_path)
    assert_same(enc, ids_of(theirs), [*PLAIN, *samples], round_trip=False)
    # One that takes blanks, of which "▁" is none.
    theirs.add_tokens([AddedToken("z", normalized=True, lstrip=True)])
    enc = load(theirs.to_str(), tmp_path)
    assert_same(enc, ids_of(theirs), samples, round_trip=False)
    for text in made:
        number = theirs.token_to_id(text)
        assert enc.decode([number]) == theirs.decode([number]) == text.replace("▁", " ")
        assert enc.encode_single_token(text.replace("▁", " ")) == number
    for text in ("z", "  x", "▁y"):
        number = theirs.token_to_id(text)
        assert enc.decode([number]) == theirs.decode([number])
        assert enc.encode_single_token(text) == number


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unk_token": "<none>", "byte_fallback": False}, "'<none>' is not in the vocabulary"),
        ({"continuing_subword_prefix": "##"}, "the second must begin with '##'"),
        ({"merges": [["<0x00>", "a"]], "vocab__add": "<0x00>a"}, "take or make '<0x00>'"),
        ({"merges": [["a", "zzzz"]]}, "'zzzz' is not in the vocabulary"),
        ({"vocab__id": ("a", 5)}, "id 5 is given twice"),
    ],
)
def test_what_is_refused(changes, message, tmp_path):
    value = changed()
    vocab = value["model"]["vocab"]
    for key, change in changes.items():
        if key == "vocab__drop":
            del vocab[change]
        elif key == "vocab__add":
            vocab[change] = len(vocab)
        elif key == "vocab__id":
            vocab[change[0]] = change[1]
        else:
            value["model"][key] = change
    path = write(tmp_path / "t.json", json.dumps(value))
    refuses(formats.load_huggingface, path, match=message)


def test_an_added_token_inside_a_character(tmp_path):
    """What is behind the added token 1 in a ½ gets a mark, too: tokenizers goes by offsets."""
    value = changed()
    value["normalizer"] = {"type": "NFKC"}
    value["pre_tokenizer"] = {
        "type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False
    }  # fmt: skip
    vocab = value["model"]["vocab"]
    number = vocab.setdefault("1", len(vocab))
    value["added_tokens"].append(
        {"id": number, "content": "1", "normalized": True, "special": False, "lstrip": False,
         "rstrip": False, "single_word": False}
    )  # fmt: skip
    theirs = Tokenizer.from_str(json.dumps(value))
    assert theirs.encode("½", add_special_tokens=False).tokens[:2] == ["1", "▁"]
    assert "▁" not in theirs.encode("1⁄2", add_special_tokens=False).tokens
    path = write(tmp_path / "t.json", json.dumps(value))
    refuses(formats.load_huggingface, path, match="the scheme first is not supported with added")
    value["normalizer"] = None
    assert formats.load_huggingface(write(path, json.dumps(value))).encode("1")


def test_what_is_put_before_a_text_that_lost_its_beginning(tmp_path):
    """It does not begin the text, says tokenizers, and gets no mark."""
    value = changed()
    strip = {"type": "Strip", "strip_left": True, "strip_right": False}
    value["normalizer"] = {
        "type": "Sequence", "normalizers": [strip, {"type": "Prepend", "prepend": "a"}]
    }  # fmt: skip
    value["pre_tokenizer"] = {
        "type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False
    }  # fmt: skip
    theirs = Tokenizer.from_str(json.dumps(value))
    tokens = [theirs.encode(text, add_special_tokens=False).tokens for text in ("b", " b")]
    assert ["".join(found) for found in tokens] == ["▁ab", "ab"]
    path = write(tmp_path / "t.json", json.dumps(value))
    refuses(formats.load_huggingface, path, match="first is not supported with Prepend after")


REPLACE = {"type": "Replace", "pattern": {"String": "a"}, "content": " "}
REPLACE_LAST = {"type": "Sequence", "decoders": [{"type": "Fuse"}, REPLACE]}


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        ({"type": "Strip", "content": " ", "start": 1, "stop": 0}, "supported after Fuse"),
        (REPLACE_LAST, "decoder Replace is"),
        ({"type": "CTC"}, "the decoder 'CTC' is not supported"),
        ({"type": "Metaspace", "replacement": "_"}, "decoder Metaspace is supported with"),
    ],
)
def test_refused_decoders(decoder, message, tmp_path):
    value = changed()
    value["decoder"] = {"type": "Sequence", "decoders": [decoder]}
    path = write(tmp_path / "t.json", json.dumps(value))
    refuses(formats.load_huggingface, path, match=message)
