"""Every step does to every character, and to nasty texts at every cut, what `tokenizers` does."""

import random
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex
from tokenizers import normalizers as hf

from streamtok.normalizers import MetaspaceText, Normalizer, ReplaceRuns

from .cuts import check, check_all_cuts
from .oracles import NORMALIZERS, PRE_TOKENIZERS
from .random_steps import CHARACTERS
from .random_steps import NASTY as LISTED

ALL = [
    char
    for char in map(chr, range(0x110000))
    if (category := unicodedata.category(char)) != "Cs"
    # Of most of the last planes, where no character is or its use is private, some are enough.
    and (category not in ("Cn", "Co") or random.random() < 0.05)
]
FORMS = ("NFC", "NFD", "NFKC", "NFKD")
CONTEXTS = ("e{}\u0301\n", "\u0345{}\u0334\n", "\u1100{}\u11a8\n", "\u0301{}\u0316\u0301\n")
MARKS = [char for char in ALL if unicodedata.combining(char)]
DECOMPOSED = [char for char in ALL if unicodedata.decomposition(char)]
NEWEST = [(0xA7C0, 0xA7FF), (0x10D20, 0x10F90), (0x16D40, 0x16D80), (0x105C0, 0x105FF)]
FIRSTS = [*map(chr, range(0x41, 0x7B)), *(chr(c) for low, high in NEWEST for c in range(low, high))]
NEWER = "\u08ca\u1715\u180f\ua7f2\uab69\U00011938\U0001e130\U000105d2\U00016d63\U0001fbf0\U00010d50"
KNOWN = NORMALIZERS | PRE_TOKENIZERS
NASTY = st.one_of(
    st.sampled_from(" ▁ab\xa0"),
    st.sampled_from(CHARACTERS),
    st.sampled_from(MARKS),
    st.sampled_from(DECOMPOSED),
    st.sampled_from(NEWER),
    st.characters(exclude_categories=["Cs"]),
)


def check_lines(name, lines):
    """Ours and theirs make the same of each line. All at once, because that is quick."""
    ours, theirs = KNOWN[name]
    if ours.normalize("".join(lines)) != theirs.normalize_str("".join(lines)):
        assert [line for line in lines if ours.normalize(line) != theirs.normalize_str(line)] == []


@pytest.mark.parametrize("name", KNOWN)
def test_every_character(name):
    check_lines(name, [char + "\n" for char in ALL])


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_every_character_that_has_to_do_with_its_neighbours(name, context):
    check_lines(name, [context.format(char) for char in (*MARKS, *DECOMPOSED, *NEWER, *FIRSTS)])


@pytest.mark.parametrize("name", KNOWN)
@settings(max_examples=60)
@given(
    st.text(NASTY, max_size=12) | st.sampled_from(LISTED),
    st.lists(st.integers(0, 12), max_size=8),
    st.booleans(),
)
def test_nasty_texts_at_any_cut(name, text, cuts, is_first):
    ours, theirs = KNOWN[name]
    assert ours.normalize(text) == theirs.normalize_str(text)
    check(ours, text, cuts)
    if len(text) <= 6:
        check_all_cuts(ours, text, is_first)
    middle = len(text) // 2
    broken = f"{text[:middle]}\udc80\udcff{text[middle:]}"
    assert {*"\udc80\udcff"} <= {*ours.normalize(broken)}  # bytes that are not UTF-8 stay
    check(ours, broken, cuts, is_first)


def test_metaspace_not_at_the_beginning():
    assert Normalizer([MetaspaceText("▁", "first")]).normalize("a b", is_first=False) == "a▁b"
    assert Normalizer([MetaspaceText("▁", "always")]).normalize("a b", is_first=False) == "▁a▁b"


@pytest.mark.parametrize(
    "regex",
    ["[^a-z]", r"\S", r"\S+", r"[^\s]", "[^a]{2,}", r"[^\n\t ]+", "[^b\U0001f600]", r"[^\]]"],
)
def test_replace_of_all_others(regex):
    """Sets that say which characters are not in them."""
    rng = random.Random(regex)
    ours = Normalizer([ReplaceRuns(regex, "_")])
    theirs = hf.Replace(Regex(regex), "_")
    for _ in range(300):
        text = "".join(
            rng.choices("ab1\xb2 \xe9\n_-x\u2026\t\U0001f600\u3000]^", k=rng.randint(0, 9))
        )
        assert ours.normalize(text) == theirs.normalize_str(text)
