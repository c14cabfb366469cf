"""SentencePiece's own normalizer: its maps and its spaces, in whole segments and at every cut."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtok.normalizers import (
    JoinedSpaces,
    LongestMap,
    Normalizer,
    Prepend,
    Replace,
    Step,
    UnknownRuns,
)
from streamtok.normalizers.charsmap import read_charsmap

from ..charsmaps import write_charsmap
from ..reference.sentencepiece_map import normalized
from ..sentencepiece_models import charsmap_of, processor, trained
from .cuts import check, check_all_cuts, waits

KEYS = {"a": "A", "ab": " ", "abcd": "", "e\u0301": "é", "e\u0301\u0327": "  e", "\xa0": " ",
        "\u2581": " ", "x": "a", "\x01": "", "bc": "\u2581", "y": "xy"}  # fmt: skip
SMALL = write_charsmap(KEYS)
LETTERS = "aabcdexy  \u2581\u0301\u0327\xa0\x01\udc80"
PARTS = [
    *("a", "e", "o", " ", "  ", "   ", "\u2581", "\xa0", "\u3000", "\u200b", "\ufeff", "\u0301"),
    *("\u0327", "\u0323", "ﬁ", "Ａ", "ｶ", "ﾞ", "\x01", "\x07", "\t", "\n", "\r\n", "\x00", "\xad"),
    *("\u1100", "\u1161", "\u11a8", "가", "①", "ª", "ſ", "ẛ", "\u2126", "Å", "日", "\U0001f44d"),
    *("\ufdfa", "\u200d", "xy", "yx", "x", "\u2028", "K", "ß", "\u1e9e", "İ", "\ufffd", "\u00b4"),
]


SYMBOLS = ("xy", "xyx", "Ａ", "e\u0301x")


def odd_text(rng: random.Random) -> str:
    """A text of what maps change, and of blanks."""
    text = "".join(rng.choices(PARTS, k=rng.randint(0, 9)))
    if rng.random() < 0.3:
        text += chr(rng.choice([rng.randrange(0x20, 0x3000), rng.randrange(0xF900, 0x10000)]))
    return text


def steps_of(charsmap: bytes, symbols: tuple[str, ...], dummy: bool, removes: bool) -> Normalizer:
    steps: list[Step] = []
    if charsmap:
        steps.append(LongestMap(charsmap, symbols, dummy and not removes))
    steps.append(JoinedSpaces() if removes else Replace("\u2581", " "))
    if dummy and removes:
        steps.append(Prepend(" ", True))
    return Normalizer(steps)


@pytest.mark.parametrize(
    ("rule", "dummy", "removes", "symbols"),
    [
        ("nmt_nfkc", True, True, ()), ("nmt_nfkc", True, False, SYMBOLS),
        ("nfkc", False, True, SYMBOLS), ("nfkc_cf", True, True, ()),
        ("nmt_nfkc_cf", False, False, ()), ("identity", True, True, SYMBOLS),
        ("identity", False, True, SYMBOLS),
    ],
)  # fmt: skip
def test_the_librarys_normalizer(rule, dummy, removes, symbols):
    data = trained(
        vocab_size=700, normalization_rule_name=rule,
        add_dummy_prefix=dummy, remove_extra_whitespaces=removes,
        user_defined_symbols=",".join(symbols),
    )  # fmt: skip
    theirs = processor(data)
    charsmap = charsmap_of(data)
    keys = read_charsmap(charsmap, 64, True) if charsmap else {}
    ours = steps_of(charsmap, symbols, dummy, removes)
    rng = random.Random(f"{rule} {dummy} {removes}")
    for _ in range(60):
        text = odd_text(rng)
        expected = theirs.normalize(text)
        slow = normalized(keys, set(symbols), dummy, removes, text)
        assert slow == expected, ascii(text)
        assert ours.normalize(text) == expected.replace("\u2581", " "), ascii(text)
        check(ours, text, rng.choices(range(len(text) + 1), k=3))
        check(ours, text, range(1, len(text)), False)


@given(
    st.text(st.sampled_from(LETTERS), max_size=8), st.booleans(), st.booleans(),
    st.sampled_from([(), ("ab",), ("x", "xyx", "e\u0301e")]),
)  # fmt: skip
@settings(max_examples=60)
def test_every_cut(text, dummy, removes, symbols):
    ours = steps_of(SMALL, symbols, dummy, removes)
    check_all_cuts(ours, text)
    check_all_cuts(ours, text, False)
    if not removes:  # "  e" is refused beside it: SentencePiece keeps runs inside of a replacement
        slow = normalized(KEYS, set(symbols), dummy, removes, text)
        assert ours.normalize(text) == slow.replace("\u2581", " ")


@given(st.text(st.sampled_from("a  \u2581é"), max_size=12), st.booleans())
@settings(max_examples=60)
def test_spaces_at_every_cut(text, dummy):
    ours = Normalizer([JoinedSpaces(), *([Prepend(" ", True)] if dummy else [])])
    check_all_cuts(ours, text)
    slow = normalized({}, set(), dummy, True, text)
    assert ours.normalize(text) == slow.replace("\u2581", " ")


@given(
    st.text(
        st.sampled_from("ab \x00é\u16a0\ud7ff\ue000\udc80\uffff\U00010000\U0010ffff"), max_size=9
    )
)
@settings(max_examples=60)
def test_unknown_runs_at_every_cut(text):
    for known in ("a ", "ab é\uffff\U00010000", "\U0010ffff\ue000\ud7ff"):
        ours = Normalizer([UnknownRuns(known, "\x00")])
        check_all_cuts(ours, text)
        slow = [one if one in known else "\0" for one in text]
        runs = itertools.groupby(slow)
        joined = ["\0" if one == "\0" else "".join(run) for one, run in runs]
        assert ours.normalize(text) == "".join(joined)


def test_what_waits_is_short():
    ours = Normalizer([LongestMap(SMALL, ("xyx",), False)])
    for text, rest in [
        ("oa", "a"), ("oab", "ab"), ("oabc", "abc"), ("oabcd", ""), ("oe", "e"), ("xy", "xy"),
        ("oe\u0301\u0327", ""), ("o", ""), ("abx", "abx"),
    ]:  # fmt: skip
        assert waits(ours, text) == rest


def test_maps_and_symbols_that_are_too_long_are_refused():
    with pytest.raises(ValueError, match="a key has more than 64 bytes"):
        LongestMap(write_charsmap({"a": "b", "x" * 65: "y"}), (), False)
    longest = LongestMap(write_charsmap({"x" * 64: "y"}), (), False)
    assert Normalizer([longest]).normalize("x" * 65) == "yx"
    with pytest.raises(ValueError, match="more than 32 keys"):
        LongestMap(write_charsmap({"x" * size: "y" for size in range(1, 40)}), (), False)
    with pytest.raises(ValueError, match="expected an unknown character"):
        UnknownRuns("ab", "a")
    with pytest.raises(ValueError, match="symbols are too long"):
        LongestMap(SMALL, ("x" * 10_000,), False)


def test_replacements_that_overlap_without_end_are_refused(monkeypatch):
    monkeypatch.setattr("streamtok.normalizers.charsmap.MOST_TEXT", 100)
    charsmap = write_charsmap({"a": "x" * 60, "b": "y" * 60})
    with pytest.raises(ValueError, match="more than 100 characters of replacements"):
        LongestMap(charsmap, (), False)
