"""Each pre-tokenizer of Hugging Face: where it cuts, for all characters, and files with it."""

from __future__ import annotations

import functools
import json
import random

import pytest
from tokenizers import Regex, Tokenizer, decoders, models
from tokenizers import pre_tokenizers as pre

import streamtok
from streamtok import formats
from streamtok.formats.huggingface_splits import pattern_of, read_pre_tokenizer
from streamtok.formats.json_value import JsonValue
from streamtok.patterns.pattern import Pattern
from streamtok.vocabulary.byte_alphabet import to_text

from ..oracles import NASTY, PLAIN, assert_same, refuses, write

CUTTERS = {
    "Whitespace": pre.Whitespace(),
    "WhitespaceSplit": pre.WhitespaceSplit(),
    "BertPreTokenizer": pre.BertPreTokenizer(),
    "Digits": pre.Digits(),
    "single Digits": pre.Digits(individual_digits=True),
    "CharDelimiterSplit": pre.CharDelimiterSplit("."),
    "FixedLength": pre.FixedLength(3),
    "UnicodeScripts": pre.UnicodeScripts(),
    "removed words": pre.Split(Regex(r"\w+"), "removed"),
    "words in a set": pre.Split(Regex(r"[\w.]+|[^\W1]"), "isolated"),
    "no words": pre.Split(Regex(r"\W+"), "merged_with_next"),
    "a string": pre.Split("a", "contiguous"),
} | {
    f"Punctuation {behavior}": pre.Punctuation(behavior)
    for behavior in ("isolated", "removed", "contiguous", "merged_with_previous",
                     "merged_with_next")
}  # fmt: skip
SEQUENCES = {
    "words, then digits": pre.Sequence([pre.WhitespaceSplit(), pre.Digits(True)]),
    "words and punctuation": pre.Sequence([pre.Whitespace(), pre.Punctuation()]),
    "punctuation, then parts": pre.Sequence(
        [pre.Punctuation("contiguous"), pre.CharDelimiterSplit("a"), pre.FixedLength(2)]
    ),
    "words, then scripts": pre.Sequence([pre.WhitespaceSplit(), pre.UnicodeScripts()]),
    "spaces": pre.Sequence([pre.Split(" ", "merged_with_next"), pre.Digits(True)]),
}


IN_FULL = "Whitespace", "WhitespaceSplit", "single Digits", "Punctuation isolated", "words in a set"


@functools.cache
def characters(step: int) -> list[str]:
    """In many texts, every step-th of the characters of the planes that have some."""
    first = random.randrange(step)
    points = [*range(first, 0xD800, step), *range(0xE000 + first, 0x1FC00, step)]
    points += [*range(0x20000, 0x32400, 97), *range(0xE0000, 0xE0200)]
    return [
        "".join("a{0}1{0}{0} {0}.".format(chr(point)) for point in points[i : i + 500])
        for i in range(0, len(points), 500)
    ]


def mine(theirs: pre.PreTokenizer) -> Pattern:
    field = JsonValue(json.loads(theirs.__getstate__()), "pre_tokenizer")
    made = pattern_of(read_pre_tokenizer(field).splits, "here")
    return Pattern.compile(made) if isinstance(made, str) else made


@pytest.mark.parametrize("name", CUTTERS)
def test_all_characters(name):
    theirs = CUTTERS[name]
    pattern = mine(theirs)
    for text in characters(3 if name in IN_FULL else 39):
        assert pattern.findall(text) == [part for part, _ in theirs.pre_tokenize_str(text)]


def test_scripts_of_all_characters():
    """Each beside a letter of Latin, and beside the next character."""
    theirs = pre.UnicodeScripts()
    pattern = mine(theirs)
    each = [chr(point) for point in (*range(0xD800), *range(0xE000, 0x32400))]
    for text in ("".join(each), "".join(f"a{char}" for char in each)):
        assert pattern.findall(text) == [part for part, _ in theirs.pre_tokenize_str(text)]


def byte_level(pre_tokenizer: pre.PreTokenizer) -> Tokenizer:
    """A vocabulary of some merges, with this pre-tokenizer."""
    ranks = streamtok.get_encoding("gpt2")._mergeable_ranks
    vocab = {to_text(token): rank for token, rank in ranks.items() if rank < 2000}
    merges = [
        (left, right)
        for token in list(vocab)[256:]
        for left, right in [(token[:i], token[i:]) for i in range(1, len(token))]
        if left in vocab and right in vocab
    ]
    made = Tokenizer(models.BPE(vocab, merges))
    made.pre_tokenizer = pre_tokenizer
    made.decoder = decoders.ByteLevel()
    return made


def loaded(tokenizer: Tokenizer, tmp_path) -> streamtok.Encoding:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return formats.load_huggingface(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("name", [*CUTTERS, *SEQUENCES])
def test_whole_files(name, tmp_path):
    cutter = {**CUTTERS, **SEQUENCES}[name]
    theirs = byte_level(pre.Sequence([cutter, pre.ByteLevel(False, use_regex=False)]))
    enc = loaded(theirs, tmp_path)
    samples = [*PLAIN, "a1.. b\n\n2\u200d²a ¿x?", *(NASTY[::7] if name in SEQUENCES else ())]
    assert_same(enc, lambda t: theirs.encode(t).ids, samples, round_trip=False)
    formats.save_huggingface(enc, tmp_path / "again.json")
    again = Tokenizer.from_file(str(tmp_path / "again.json"))
    for text in samples:
        assert again.encode(text).ids == theirs.encode(text).ids
    back = formats.load_huggingface(tmp_path / "again.json")
    assert_same(back, lambda t: theirs.encode(t).ids, PLAIN, round_trip=False)


def test_a_space_before_the_text(tmp_path):
    for use_regex in (True, False):
        theirs = byte_level(pre.ByteLevel(add_prefix_space=True, use_regex=use_regex))
        theirs.add_special_tokens(["<s>"])
        enc = loaded(theirs, tmp_path)
        samples = [*PLAIN, "a<s>b<s> c<s>", "<s><s>", "<s>", " a", "\n", "a<s"]
        assert_same(
            enc, lambda t, x=theirs: x.encode(t).ids, samples, allowed_special="all",
            round_trip=False,
        )  # fmt: skip
        formats.save_huggingface(enc, tmp_path / "again.json")
        assert formats.load_huggingface(tmp_path / "again.json").digest == enc.digest


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"type": "FixedLength", "length": 0}, "the length 0 is not supported"),
        ({"type": "FixedLength", "length": 9999}, "the length 9999 is not supported"),
        ({"type": "CharDelimiterSplit", "delimiter": "ab"}, "expected one character, found 2"),
        ({"type": "Punctuation", "behavior": "None"}, "the behavior 'None' is not supported"),
        ({"type": "Whitespace", "more": 1}, "the field 'more' is not supported"),
        ({"type": "Metaspace", "replacement": "ab"}, "expected one character"),
        (
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "twice"},
            "expected always, first or never",
        ),
        (
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first",
             "add_prefix_space": False},
            "'first' contradicts add_prefix_space",
        ),
    ],
)  # fmt: skip
def test_damage_is_named(field, message, tmp_path):
    value = json.loads(byte_level(pre.ByteLevel(False)).to_str())
    value["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [field]}
    path = write(tmp_path / "t.json", json.dumps(value))
    refuses(formats.load_huggingface, path, match=message)
