"""Normalizers in a `tokenizer.json`: read, or refused by name."""

import json
import pickle

import pytest
from tokenizers import Regex
from tokenizers import normalizers as hf

from streamtok.formats.huggingface_normalizers import read_normalizer
from streamtok.formats.json_value import JsonValue
from streamtok.normalizers import Normalizer

from ..normalizers.oracles import NORMALIZERS
from ..oracles import refuses

TEXT = "  A  “ﬁne” e\u0301l\xe8ve,\x07 中文\u200b Σ\u3000 İ\n"
THEIRS = [
    *(theirs for _, theirs in NORMALIZERS.values()),
    hf.Replace(Regex(r"[\u00AD\u200B\uFEFF]"), ""), hf.Replace(Regex(r"\p{Zs}"), "-"),
    hf.Replace(Regex(r"\p{Zs}{2,}"), "-"), hf.Replace(Regex(r"[\p{P}\x{3a3}-\x{3a5}\]-]+"), "-"),
    hf.Replace(Regex(r"[^\p{L}\u0301]"), "."), hf.Replace(Regex(r"\u00e8"), "e"),
    hf.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "), hf.Replace(Regex(r"\s{3,}|[\n]"), " "),
    hf.BertNormalizer(strip_accents=True),
    hf.BertNormalizer(lowercase=False), hf.BertNormalizer(strip_accents=False),
    hf.BertNormalizer(clean_text=False, handle_chinese_chars=False),
    hf.Sequence([]), hf.Sequence([hf.NFC(), hf.Sequence([hf.Strip(), hf.Prepend("x")])]),
]  # fmt: skip


def read(value) -> Normalizer:
    return read_normalizer(JsonValue(value, "t.json: normalizer"))


@pytest.mark.parametrize("theirs", THEIRS, ids=lambda theirs: theirs.__getstate__().decode()[:60])
def test_read(theirs):
    ours = read(json.loads(theirs.__getstate__()))
    assert ours.normalize(TEXT) == theirs.normalize_str(TEXT)
    assert pickle.loads(pickle.dumps(ours)) == ours


def test_null_changes_nothing():
    assert read(None) is not None
    assert not read(None)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "normalizer: type: expected a string"),
        ({"type": "Precompiled", "precompiled_charsmap": ""}, "found 0 bytes"),
        ({"type": "Precompiled", "precompiled_charsmap": "??"}, "charsmap: not a map of Sentenc"),
        ({"type": "Precompiled", "precompiled_charsmap": "AAAA"}, "charsmap: not a map of Sent"),
        ({"type": "Precompiled", "precompiled_charsmap": 3}, "charsmap: expected a string"),
        ({"type": "Append", "append": "x"}, "'Append' is not supported"),
        ({"type": "NFC", "more": 1}, "the field 'more' is not supported"),
        ({"type": "Strip", "strip_left": True}, "strip_right: expected true or false"),
        ({"type": "Prepend"}, "prepend: expected a string"),
        ({"type": "Prepend", "prepend": ""}, "Prepend with an empty string"),
        ({"type": "Replace", "pattern": {}, "content": ""}, "one of String and Regex"),
        ({"type": "Replace", "pattern": "a", "content": ""}, "pattern: expected an object"),
        ({"type": "Replace", "pattern": {"String": ""}, "content": ""}, "empty String"),
        ({"type": "Replace", "pattern": {"Regex": "a|b"}, "content": ""}, "'a|b' is not supported"),
        ({"type": "BertNormalizer"}, "lowercase: expected true or false"),
        (
            {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "x"}]},
            r"s\[1\]: the norm",
        ),
        ({"type": "Sequence"}, "normalizers: expected an array"),
        ({"type": "Sequence", "normalizers": [{"type": "Nmt"}] * 2000}, "more than 1000"),
    ],
)
def test_refusals_name_the_part(value, message):
    refuses(read, value, match=message)
