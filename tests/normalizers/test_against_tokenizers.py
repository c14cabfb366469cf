"""Every step does to every character, and to nasty texts at every cut, what `tokenizers` does."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from streamtok.normalizers import MetaspaceText, Normalizer

from .cuts import check, check_all_cuts
from .oracles import NORMALIZERS, PRE_TOKENIZERS

ALL = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
BY_CHARACTER = ("Lowercase", "StripAccents", "Nmt", "clean", "chinese")
CONTEXTS = ("{}\n", "e{}\u0301\n", "\u0345{}\u0334\n", "\u1100{}\u11a8\n", "\u0301{}\u0316\u0301\n")

MARKS = [char for char in ALL if unicodedata.combining(char)]
DECOMPOSED = [char for char in ALL if unicodedata.decomposition(char)]
SOME = "aeiAEIΣσςİIſKﬁ<>= \t\n\x00\x1c\x7f\x85\xa0\u1680\u200b\u2028\u3000\ufeff\ufffd▁中文字가각각゛ﾊﾟか"
NEWER = "\u08ca\u1715\u180f\ua7f2\uab69\U00011938\U0001e130\U000105d2\U00016d63\U0001fbf0\U00010d50"
NASTY = st.one_of(
    st.sampled_from(SOME),
    st.sampled_from(MARKS),
    st.sampled_from(DECOMPOSED),
    st.sampled_from(NEWER),
    st.characters(exclude_categories=["Cs"]),
)


@pytest.mark.parametrize("name", [name for name in NORMALIZERS if " " not in name])
def test_every_character(name):
    ours, theirs = NORMALIZERS[name]
    for context in CONTEXTS[: 1 if name in BY_CHARACTER else None]:
        lines = [context.format(char) for char in ALL]
        text = "".join(lines)
        if ours.normalize(text) != theirs.normalize_str(text):
            assert [line for line in lines if ours.normalize(line) != theirs.normalize_str(line)] == []


@pytest.mark.parametrize("name", NORMALIZERS)
@given(st.text(NASTY, max_size=12), st.lists(st.integers(0, 12), max_size=8))
def test_nasty_texts_at_random_cuts(name, text, cuts):
    ours, theirs = NORMALIZERS[name]
    assert ours.normalize(text) == theirs.normalize_str(text)
    check(ours, text, cuts)


@pytest.mark.parametrize("name", NORMALIZERS)
@settings(max_examples=25)
@given(st.text(NASTY, max_size=6))
def test_nasty_texts_at_every_cut(name, text):
    check_all_cuts(NORMALIZERS[name][0], text)


@pytest.mark.parametrize("name", NORMALIZERS)
@given(st.text(NASTY, max_size=6), st.text(NASTY, max_size=6), st.integers(0, 6))
def test_bytes_that_are_no_utf_8_stay(name, before, behind, cut):
    ours, _ = NORMALIZERS[name]
    text = f"{before}\udc80\udcff{behind}"
    assert "\udc80" in ours.normalize(text)
    assert "\udcff" in ours.normalize(text)
    check(ours, text, [cut])


@given(st.text(st.sampled_from(" ▁ab\xa0"), max_size=5), st.integers(0, 5))
def test_metaspace(text, cut):
    for scheme in ("always", "first", "never"):
        ours, theirs = PRE_TOKENIZERS[scheme]
        expected = "".join(part for part, _ in theirs.pre_tokenize_str(text))
        assert ours.normalize(text) == expected
        check(ours, text, [cut])
        check(ours, text, [cut], is_first=False)


def test_metaspace_not_at_the_beginning():
    assert Normalizer([MetaspaceText("▁", "first")]).normalize("a b", is_first=False) == "a▁b"
    assert Normalizer([MetaspaceText("▁", "always")]).normalize("a b", is_first=False) == "▁a▁b"


@given(st.text(st.sampled_from(" ab\xa0"), max_size=5), st.integers(0, 5))
def test_prefix_space(text, cut):
    ours, _ = PRE_TOKENIZERS["PrefixSpace"]
    theirs = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    expected = theirs.pre_tokenize_str(text)
    assert [part for part, _ in expected] == [
        part for part, _ in as_bytes.pre_tokenize_str(ours.normalize(text))
    ]
    check(ours, text, [cut])
