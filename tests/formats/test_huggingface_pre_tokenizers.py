"""Each pre-tokenizer of Hugging Face: where it cuts, for all characters, and what is refused."""

from __future__ import annotations

import functools
import json
import random

import pytest
from tokenizers import Regex, Tokenizer, models
from tokenizers import pre_tokenizers as pre

from streamtok.formats.huggingface_splits import pattern_of, read_pre_tokenizer
from streamtok.formats.json_value import JsonValue
from streamtok.patterns.pattern import Pattern

from .reading import refused

CUTTERS = {
    "Whitespace": pre.Whitespace(),
    "WhitespaceSplit": pre.WhitespaceSplit(),
    "BertPreTokenizer": pre.BertPreTokenizer(),
    "Digits": pre.Digits(),
    "single Digits": pre.Digits(individual_digits=True),
    "CharDelimiterSplit": pre.CharDelimiterSplit("."),
    "FixedLength": pre.FixedLength(3),
    "removed words": pre.Split(Regex(r"\w+"), "removed"),
    "words in a set": pre.Split(Regex(r"[\w.]+|[^\W1]"), "isolated"),
    "no words": pre.Split(Regex(r"\W+"), "merged_with_next"),
    "a string": pre.Split("a", "contiguous"),
} | {
    f"Punctuation {behavior}": pre.Punctuation(behavior)
    for behavior in ("isolated", "removed", "contiguous", "merged_with_previous",
                     "merged_with_next")
}  # fmt: skip


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
def test_damage_is_named(field, message):
    steps = {"type": "Sequence", "pretokenizers": [field]}
    refused(json.loads(Tokenizer(models.BPE()).to_str()) | {"pre_tokenizer": steps}, message)
