"""The check that lets texts pass normalizers by is never wrong, and mostly says yes."""

from __future__ import annotations

import random

import pytest

from streamtok._core._testing import use_wide_leads
from streamtok._core.encode import SpecialMatcher, Untouched
from streamtok.engines.added_tokens import Finder
from streamtok.engines.rules import TokenFlags
from streamtok.engines.shortcut import shortcut_of
from streamtok.normalizers import (
    Form,
    Lowercase,
    MetaspaceText,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
)
from streamtok.normalizers.char_sets import ranges_of
from streamtok.normalizers.charsmap import write_charsmap

PLAIN = Finder(SpecialMatcher([], frozenset(), ()), [])


def check_of(*steps) -> Untouched:
    found = shortcut_of(PLAIN, Normalizer(steps), None, None)
    assert found
    return found.untouched


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_what_is_untouched_is_left_wherever_it_stands(form):
    rng = random.Random(form)
    step, check = Form(form), check_of(Form(form))
    ranges = {kind: ranges_of(f"{form}_{kind}") for kind in ("joins", "opens", "changes")}
    passed = 0
    for _ in range(20_000):
        text = ""
        for _ in range(rng.randint(1, 5)):
            kind = rng.choice(["joins", "joins", "opens", "changes", ""])
            low, high = rng.choice(ranges[kind]) if kind else (0x61, 0x4E2D)
            text += chr(rng.randint(low, high))
        if not check.is_all_of(text):
            continue
        passed += 1
        assert step.normalize(text, True) == text
        assert check.is_all_of(text.encode())
        found = check.parts_of(text.encode())
        if found:
            size, head, first, last, partial = found
            data = text.encode()
            assert (size, partial) == (len(data), 0)
            marks, rest = data[:head].decode(), data[head:].decode()
            for before in ("e\u0301", "\u0915", "\u1100"):
                left = step.normalize(before + marks, True)
                assert step.normalize(before + text, True) == left + rest
            assert len(data[head : head + first].decode()) == 1
            assert data[size - last :].decode()
    assert passed > 500


@pytest.mark.parametrize(("form", "wide"), [("NFC", True), ("NFKC", False)])
def test_every_pair_of_a_starter_and_a_mark(form, wide):
    """Those that change are seen, and no others."""
    step, check = Form(form), check_of(Form(form))
    changed = {c for low, high in ranges_of(f"{form}_changes") for c in range(low, high + 1)}
    marks = [c for low, high in ranges_of(f"{form}_joins") for c in range(low, high + 1)]
    marks = [c for c in marks if step.normalize(chr(c), True) == chr(c)]
    syllables = range(0xAC01, 0xD7A4)
    opens = [c for low, high in ranges_of(f"{form}_opens") for c in range(low, high + 1)]
    starters = [c for c in opens if c not in changed and c not in syllables]
    assert len(starters) > 1000
    assert len(marks) > 700
    use_wide_leads(wide)
    try:
        for starter in [*starters, *syllables[::29], ord("a"), 0x4E2D]:
            pairs = [chr(starter) + chr(mark) for mark in marks]
            if step.normalize("".join(pairs), True) == "".join(pairs):
                assert check.is_all_of("".join(pairs))
                continue
            for pair in pairs:
                assert check.is_all_of(pair) == (step.normalize(pair, True) == pair), ascii(pair)
    finally:
        use_wide_leads(True)


@pytest.mark.parametrize("stops", [[], [(0x20, 0x20), (0x7F, 0x7F)]])
def test_bytes_that_may_matter_are_found_by_every_tier(stops):
    """One character that stops, or is a mark, anywhere in blocks of others."""
    rng = random.Random(len(stops))
    stops = [*stops, (0xE9, 0xE9), (0x3099, 0x309A), (0x1D15E, 0x1D15E)]
    check = Untouched(stops, [(0x301, 230), (0x323, 220)], [(0x65, 0x301)])
    inert = "ab~0\xd7\u0414\u4e2d\uac00\U0001f600"
    for _ in range(3000):
        text = "".join(rng.choices(inert, k=rng.randint(0, 90)))
        at = rng.randint(0, len(text))
        one = rng.choice(
            ["\xe9", "\u3099", "\U0001d15e", "e\u0301", "a\u0301\u0323", " ", "\x7f", ""]
        )
        text = text[:at] + one + text[at:]
        is_left = not one or (one in " \x7f" and len(stops) == 3)
        for wide in (True, False):
            use_wide_leads(wide)
            try:
                assert check.is_all_of(text) == is_left, (wide, ascii(text))
            finally:
                use_wide_leads(True)


def test_what_a_map_leaves():
    rng = random.Random(3)
    step = Precompiled(write_charsmap({"e\u0301": "é", "\n": " ", "\u0600": "", "日": "a"}))
    check = check_of(step)
    assert check.is_all_of("plain text, e, ©, 中, 가" * 9)
    assert not shortcut_of(PLAIN, Normalizer([step]), None, None).begins_plain
    letters = "abe 中©가\u0301\n\u0600\u200d日f\u1100\u1161"
    for _ in range(5000):
        text = "".join(rng.choices(letters, k=rng.randint(1, 5)))
        if check.is_all_of(text):
            for before in ("", "a", "e", "\u0301"):
                left = step.normalize(before, True)
                assert step.normalize(before + text, True) == left + text


def test_parts_of_a_chunk():
    check = check_of(Form("NFC"))
    assert check.parts_of("abc") == (3, 0, 1, 1, 0)
    assert check.parts_of("\u0301abc\u0316") == (7, 2, 1, 3, 0)
    assert check.parts_of("ab\u3042".encode()[:-1]) == (2, 0, 1, 1, 2)
    assert check.parts_of("\u0915\u093c") == (6, 0, 3, 6, 0)
    for text in ("", "\u0301", "e\u0301", "a\u0344", "\ud800a", b"\xff", b"a\xffb"):
        assert check.parts_of(text) is None
    assert check.is_all_of("")
    assert not check.is_all_of("x" * 200 + "e\u0301" + "x" * 200)
    assert check.is_all_of("\u3042\u4e00" * 100 + "\u0915\u093c" * 50)
    assert not check.is_all_of("a" + "\u0316" * 100 + "\u0301")  # too many marks to look back over


def test_which_normalizers_have_a_short_way():
    fold = Normalizer([Replace("\u2581", " ")])
    found = shortcut_of(PLAIN, fold, None, None)
    assert found
    assert found.begins_plain
    assert not found.untouched.is_all_of("a\u2581")
    found = shortcut_of(PLAIN, Normalizer([Prepend(" ")]), None, fold)
    assert found
    assert not found.begins_plain
    found = shortcut_of(PLAIN, None, None, Normalizer([MetaspaceText("\u2581", "never")]))
    assert found
    assert not found.untouched.is_all_of("a b")
    assert shortcut_of(PLAIN, Normalizer([Lowercase()]), None, None) is None
    assert shortcut_of(PLAIN, fold, PLAIN, None) is None
    matcher = SpecialMatcher([("a", 1)], {"a"}, ())
    flagged = Finder(matcher, [(1, TokenFlags(lstrip=True))])
    assert shortcut_of(flagged, fold, None, None) is None


def test_ranges_that_are_none():
    for ranges in ([(5, 4)], [(0, 0x110000)]):
        with pytest.raises(ValueError, match="is no range of code points"):
            Untouched(ranges, [], [])
