"""How much longer steps can make a text: the bound holds, and what it refuses is named."""

from __future__ import annotations

import json
import pickle
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamtok
from streamtok import formats
from streamtok.engines.rules import TextRules
from streamtok.errors import VocabularyError
from streamtok.normalizers import (
    BertAccents,
    BertChinese,
    BertClean,
    ByteLetters,
    Form,
    LongestMap,
    Lowercase,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
    ReplaceRuns,
    StripAccents,
)
from streamtok.normalizers import normalizer as normalizer_module
from streamtok.normalizers.growth import MOST_GROWTH, growth_of, n_bytes

from ..charsmaps import write_charsmap
from ..encodings import SINGLES, make_encoding
from ..formats.reading import of_bytes
from ..long.loader_fuzz import sound_files
from ..packed_files import closed, opened
from ..sentencepiece_models import field
from .random_steps import STEPS

CHARACTERS = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point <= 0xDFFF]
FEW = st.text("ab é\u0301\u2581\ufdfaİȺ中𝄞", max_size=8)
REPLACE = st.builds(Replace, st.text("ab \u0301", min_size=1, max_size=3), FEW)
ANY = st.builds(lambda make, rng: make(rng), st.sampled_from(STEPS), st.randoms())
STEP = st.one_of(REPLACE, st.builds(Prepend, FEW), st.just(ByteLetters()), ANY)


@given(st.lists(STEP, max_size=4), FEW)
def test_no_text_grows_more_than_the_bound_says(steps, text):
    most = growth_of([step.growth for step in steps]) * n_bytes(text) * (1 + 1e-9)
    found = text
    for step in steps:
        found = Normalizer([step]).normalize(found)
        assert n_bytes(found) <= most


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_the_factor_of_a_form_is_that_of_its_worst_character(form):
    grown = (n_bytes(unicodedata.normalize(form, one)) / n_bytes(one) for one in CHARACTERS)
    assert Form(form).growth.factor == max(grown)


def test_the_factor_of_lower_case_is_that_of_its_worst_character():
    grown = (n_bytes(one.lower()) / n_bytes(one) for one in CHARACTERS)
    assert Lowercase().growth.factor == max(grown)


def test_a_list_of_replacements_does_not_add_up():
    """What real files may have: many steps, none of which feeds another."""
    emoji = [Replace(chr(0x1F600 + i), f" grinning face number {i} ") for i in range(80)]
    assert Normalizer(emoji).growth < 10
    words = ["don't|do not", "I'm|I am", "gonna|going to", "isn't|is not", '``|"', "--|\u2014"]
    assert Normalizer([Replace(*word.split("|")) for word in words * 9]).growth < 10
    swapped = [Replace(one, other) for one, other in zip("abcde", "bcdea", strict=True)]
    assert Normalizer(swapped * 50).growth == 1


def test_the_normalizers_of_real_files_are_far_below_the_limit():
    marks = [Replace("``", '"'), Replace("''", '"')]
    albert = [*marks, Form("NFKD"), StripAccents(), Lowercase(), Replace(" ", "\u2581")]
    bert = [BertClean(), BertChinese(), Form("NFD"), BertAccents(), Lowercase()]
    for steps in (albert, bert, [Prepend("\u2581"), Replace(" ", "\u2581")]):
        assert Normalizer(steps).growth < MOST_GROWTH / 4


BOMBS = [
    ([Replace("l", "l" * 60_000)] * 3, "of the 3 steps, number 1, .*'Replace', 'l'.*6e.04"),
    ([Replace("a", "aa")] * 24, "1.678e.07, and at most 1024"),
    ([Replace("ab", "abab")] * 24, "of the 24 steps, number 1"),
    ([Lowercase(), Prepend("x" * 2_000)], "number 2, .*'Prepend'"),
    ([ReplaceRuns(r"\s+", "x" * 2_000)], "number 1, .*'ReplaceRuns'"),
    ([Precompiled(write_charsmap({"a": "b" * 2_000}))], "number 1, .*'Precompiled'"),
    ([LongestMap(write_charsmap({"a": "b" * 2_000}), (), False)], "number 1, .*'LongestMap'"),
    ([Replace("a", "b" * 5_000), Replace("b", "")], "number 1"),  # between two steps, too
]


@pytest.mark.parametrize(("steps", "message"), BOMBS)
def test_bombs_are_refused_by_name(steps, message):
    with pytest.raises(ValueError, match=message) as refused:
        Normalizer(steps)
    assert len(str(refused.value)) < 500
    with pytest.raises(ValueError, match=message):
        Normalizer.from_spec(tuple(step.spec for step in steps))


def test_a_pickle_cannot_have_one():
    sound = Normalizer([Replace("l", "l" * 9)] * 3)
    forged = pickle.dumps(sound, protocol=0).replace(b"lllllllll", b"l" * 2_000)
    with pytest.raises(ValueError, match=r"grow by a factor of 8e\+09"):
        pickle.loads(forged)


def test_both_normalizers_count_together():
    half = Normalizer([Replace("a", "a" * 60)])
    with pytest.raises(ValueError, match="by a factor of 3600 together"):
        TextRules(normalizer=half, second_normalizer=half)


def of_file(normalizer, added=()):
    """A tokenizer.json of 256 bytes with this normalizer."""
    tokens = [{"id": 256 + i, "content": text, "normalized": True} for i, text in enumerate(added)]
    return json.loads(of_bytes().to_str()) | {"normalizer": normalizer, "added_tokens": tokens}


def doubling(times):
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    return {"type": "Sequence", "normalizers": [step] * times}


def test_a_file_with_a_bomb_is_named(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(of_file(doubling(24))))
    with pytest.raises(VocabularyError, match=r"tokenizer.json: normalizer: a text could grow"):
        formats.load(path)
    path.write_text(json.dumps(of_file(doubling(10))))
    assert len(formats.load(path).encode("a")) == 1024


def test_added_tokens_that_the_normalizer_makes_long(tmp_path, monkeypatch):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(of_file(doubling(10), ["aa"])))
    with pytest.raises(VocabularyError, match=r"tokenizer.json: .*1024 bytes; 'aaaa.*has 2048"):
        formats.load(path)
    monkeypatch.setattr(normalizer_module, "MOST_TOKENS", 1 << 13)
    many = [f"{i}a" for i in range(9)]
    path.write_text(json.dumps(of_file(doubling(9), many)))
    assert formats.load(path).encode("7a7")
    path.write_text(json.dumps(of_file(doubling(9), [*many, *(f"{i}ab" for i in range(9))])))
    with pytest.raises(VocabularyError, match=r"tokenizer.json: the tokens are too long together"):
        formats.load(path)
    sound = Normalizer([Replace("a", "a" * 1_000)])
    tokens = SINGLES
    rules = TextRules(
        (("aa", 300),), normalizer=sound,
        token_flags=(("aa", streamtok.engines.rules.TokenFlags(normalized=True)),),
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"at most 1024 bytes; 'aaa.* has 2000"):
        make_encoding("a", tokens, rules=rules)


def test_a_model_and_a_packed_file_with_a_bomb_are_named(tmp_path):
    files = sound_files(tmp_path)
    data, load = files["mapped.model"]
    sound = write_charsmap({"a": "A", "e\u0301": "é", "\xa0": " ", "ab": ""})
    assert field(3, field(2, sound)) in data
    bomb = field(3, field(2, write_charsmap({"a": "b" * 60_000})))
    (tmp_path / "bomb.model").write_bytes(data.replace(field(3, field(2, sound)), bomb))
    with pytest.raises(VocabularyError, match=r"bomb.model: a text could grow .*'LongestMap'"):
        load(tmp_path / "bomb.model")
    rules = TextRules(normalizer=Normalizer([Replace("l", "l" * 9)] * 3))
    enc = make_encoding(r"[\s\S]+", rules=rules)  # fmt: skip
    path = tmp_path / "bomb.streamtok"
    formats.save_packed(enc, path)
    fields = opened(path.read_bytes())
    fields["rules"]["normalizer"] = [["Replace", "l", "l" * 2_000]] * 3
    path.write_bytes(closed(fields))
    with pytest.raises(VocabularyError, match=r"bomb.streamtok is damaged.*could grow"):
        formats.load(path)
