"""Normalizers in a `tokenizer.json`: read, written, refused by name."""

import json
import pickle

import pytest
from tokenizers import Regex
from tokenizers import normalizers as hf

from streamtok.errors import VocabularyError
from streamtok.formats.huggingface_normalizers import normalizer_json, read_normalizer
from streamtok.formats.json_value import JsonValue
from streamtok.normalizers import IDENTITY, Normalizer, PrefixSpace
from streamtok.normalizers.charsmap import write_charsmap

TEXT = "  A  “ﬁne” e\u0301l\xe8ve,\x07 中文\u200b Σ\u3000 İ\n"
THEIRS = [
    hf.NFC(), hf.NFD(), hf.NFKC(), hf.NFKD(), hf.Lowercase(), hf.Nmt(), hf.StripAccents(),
    hf.Strip(), hf.Strip(left=False, right=True), hf.Prepend("▁"), hf.Replace(" ", "▁"),
    hf.Replace(Regex(r"[\u00AD\u200B\uFEFF]"), ""), hf.Replace(Regex(r"\p{Zs}"), "-"),
    hf.Replace(Regex(r"\p{Zs}{2,}"), "-"), hf.Replace(Regex(r"[\p{P}\x{3a3}-\x{3a5}\]-]+"), "-"),
    hf.Replace(Regex(r"[^\p{L}\u0301]"), "."), hf.Replace(Regex(r"\u00e8"), "e"),
    hf.Replace(Regex(" {2,}"), " "), hf.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "),
    hf.Replace(Regex(r"\s{3,}|[\n]"), " "), hf.BertNormalizer(),
    hf.BertNormalizer(strip_accents=True),
    hf.BertNormalizer(lowercase=False), hf.BertNormalizer(strip_accents=False),
    hf.BertNormalizer(clean_text=False, handle_chinese_chars=False),
    hf.Precompiled(write_charsmap({"“": '"', "e\u0301": "é", "ﬁ": "fi"})),
    hf.Sequence([]), hf.Sequence([hf.NFC(), hf.Sequence([hf.Strip(), hf.Prepend("x")])]),
]  # fmt: skip


def read(value) -> Normalizer:
    return read_normalizer(JsonValue(value, "t.json: normalizer"))


@pytest.mark.parametrize("theirs", THEIRS, ids=lambda theirs: theirs.__getstate__().decode()[:60])
def test_read_and_written(theirs):
    ours = read(json.loads(theirs.__getstate__()))
    assert ours.normalize(TEXT) == theirs.normalize_str(TEXT)
    assert pickle.loads(pickle.dumps(ours)) == ours
    written = normalizer_json(ours)
    if written is None:
        assert ours == IDENTITY
        return
    assert read(json.loads(json.dumps(written))).normalize(TEXT) == ours.normalize(TEXT)
    again = hf.Sequence([])
    again.__setstate__(json.dumps({"type": "Sequence", "normalizers": [written]}).encode())
    assert again.normalize_str(TEXT) == theirs.normalize_str(TEXT)


def test_null_changes_nothing():
    assert read(None) is not None
    assert read(None).is_identity
    assert normalizer_json(IDENTITY) is None


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
        ({"type": "Sequence", "normalizers": [None, {"type": "x"}]}, r"normalizers\[1\]: the norm"),
        ({"type": "Sequence"}, "normalizers: expected an array"),
        ({"type": "Sequence", "normalizers": [{"type": "Nmt"}] * 2000}, "more than 1000"),
    ],
)
def test_refusals_name_the_part(value, message):
    with pytest.raises(VocabularyError, match=message):
        read(value)


def test_a_step_that_is_no_normalizer_is_not_written():
    with pytest.raises(ValueError, match="PrefixSpace"):
        normalizer_json(Normalizer([PrefixSpace()]))
