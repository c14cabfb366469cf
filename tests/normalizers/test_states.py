"""What waits is little, takes linear time, and is refused if it is forged."""

import random
import time

import pytest

from streamtok.normalizers import (
    Form,
    JoinedSpaces,
    LongestMap,
    Lowercase,
    MetaspaceText,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
    ReplaceRuns,
    Strip,
    UnknownRuns,
)
from streamtok.normalizers.charsmap import write_charsmap
from streamtok.normalizers.links import LONGEST_HELD, held_by, unread_by, with_unread

from ..nasty import TEXTS
from .oracles import NORMALIZERS

NOTHING_WAITS = [
    (Form("NFC"), "a. "), (Form("NFC"), "中文"), (Form("NFD"), "한국"), (Form("NFKC"), "中1"),
    (Lowercase(), "ABCΣ"), (Strip(True, True), " a"), (Prepend("x"), "a"),
    (Replace("ab", ""), "a "), (ReplaceRuns(" +", ""), "a   "), (MetaspaceText("▁", "first"), "a "),
]  # fmt: skip


@pytest.mark.parametrize(("step", "text"), NOTHING_WAITS)
def test_nothing_waits_without_a_reason(step, text):
    normalizer = Normalizer([step])
    state, blocks = normalizer.feed(normalizer.begin(), text, final=False)
    assert held_by(state) == ""
    assert "".join(out for out, _ in blocks) == normalizer.normalize(text)


WAITING = [
    (Form("NFC"), "xe", "e"), (Form("NFC"), "xe\u0323\u0301", "e\u0323\u0301"),
    (Form("NFC"), "가\uac00", "\uac00"), (Form("NFC"), "x=", "="),
    (Form("NFD"), "x\u0301", "\u0301"), (Form("NFD"), "x\xe9", "\xe9"),
    (Form("NFKC"), "中\uff76", "\uff76"), (Strip(True, True), "a \n", " \n"),
    (Replace("abac", ""), "xaba", "aba"), (ReplaceRuns(" {3,}", ""), "a  ", "  "),
]  # fmt: skip


@pytest.mark.parametrize(("step", "text", "waits"), WAITING)
def test_what_waits(step, text, waits):
    normalizer = Normalizer([step])
    state, _ = normalizer.feed(normalizer.begin(), text, final=False)
    assert held_by(state) == waits


@pytest.mark.parametrize("name", NORMALIZERS)
def test_a_text_that_needs_nothing_is_one_block(name):
    normalizer, _ = NORMALIZERS[name]
    text = "<a plain text>" * 100
    state, blocks = normalizer.feed(normalizer.begin(), text, final=True)
    blocks = [block for block in blocks if block[1]]
    assert [source for _, source in blocks] == [text]
    assert held_by(state) == ""


def test_a_change_of_length_parts_blocks():
    normalizer = Normalizer([Form("NFC")])
    _, blocks = normalizer.feed(normalizer.begin(), "1 e\u0301 2 \u212b 3", final=True)
    assert blocks == [("1 ", "1 "), ("é", "e\u0301"), (" 2 Å 3", " 2 \u212b 3")]


LONG = {
    "NFC": "e" + "\u0301" * 10_000 + "\u0316" * 10_000,
    "NFD": "\u1e0b" + "\u0345\u0334\u0344" * 7_000,
    "NFKC": "\uff76" + "\u3099\u0345" * 10_000,
    "Strip": "a" + " " * 20_000,
    "many": "a" + "\u0301\u0316" * 10_000 + " " * 20_000,
}


@pytest.mark.parametrize("name", LONG)
def test_long_runs_take_linear_time(name):
    normalizer, theirs = NORMALIZERS[name]
    text = LONG[name]
    start = time.process_time()
    result = normalizer.normalize(text)
    assert result == theirs.normalize_str(text)
    state, parts = normalizer.begin(), []
    for char in text:
        state, blocks = normalizer.feed(state, char, final=False)
        parts += [out for out, _ in blocks]
    state, blocks = normalizer.feed(state, "", final=True)
    assert "".join([*parts, *(out for out, _ in blocks)]) == result
    assert time.process_time() - start < 10  # quadratic: minutes


FORGED = [
    (Form("NFC"), [1, None, False, "e"]), (Lowercase(), [1, "", []]),
    (Prepend("x"), [None, 2, -1, True]), (MetaspaceText("▁", "never"), [1]),
    (MetaspaceText("▁", "first"), [2]), (Strip(True, True), [2]), (Strip(False, True), [1]),
    (Replace("ab", ""), [1]), (ReplaceRuns(" {2,}", ""), [2]), (ReplaceRuns("a", ""), [1]),
    (Precompiled(write_charsmap({"a": "b"})), [256]),
    (JoinedSpaces(True), [3]), (JoinedSpaces(False), [2]),
    (LongestMap(b"", (), True), [2]), (LongestMap(b"", (), False), [1]),
    (UnknownRuns("a", "b"), [2]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("step", "context"), [(step, context) for step, contexts in FORGED for context in contexts]
)
def test_a_context_that_a_step_does_not_have_is_refused(step, context):
    normalizer = Normalizer([step])
    assert normalizer.check_state([[0, []]]) == ((0, ()),)
    with pytest.raises(ValueError, match="contexts"):
        normalizer.check_state([[context, []]])


@pytest.mark.parametrize("name", NORMALIZERS)
def test_any_text_may_be_unread(name):
    normalizer, _ = NORMALIZERS[name]
    rng = random.Random(name)
    for text in TEXTS:
        text = text.decode("utf-8", "ignore")
        cut = rng.randint(0, len(text))
        state = normalizer.check_state(with_unread(normalizer.begin(), text[:cut]))
        is_long = cut > LONGEST_HELD
        assert unread_by(state) == (None if is_long else (normalizer.begin(), text[:cut]))
        state, blocks = normalizer.feed(state, text[cut : cut + 1], False)
        blocks += normalizer.feed(state, text[cut + 1 :], True)[1]
        assert "".join(made for made, _ in blocks) == normalizer.normalize(text)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="one character"):
        MetaspaceText("ab", "first")
    with pytest.raises(ValueError, match="prepend_scheme"):
        MetaspaceText("a", "second")
    with pytest.raises(ValueError, match="normalization form"):
        Form("NFX")
    for regex in ("a*", "(a)", "a|b", "[^\\S]", "[z-a]", "^a", "a{0,}", "[\\s-z]", "\\d", ""):
        with pytest.raises(ValueError, match=r"not supported|empty range"):
            ReplaceRuns(regex, "")
