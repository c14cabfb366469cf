"""The table of a sequence of steps makes of a text, cut anywhere, what the steps make of it."""

import random
from itertools import chain

import pytest

from streamtok._core._testing import kernels, levels
from streamtok._core.encode import ElementTable, change_elements
from streamtok.engines.rules import TextRules
from streamtok.normalizers import (
    Form,
    Lowercase,
    MetaspaceText,
    Nmt,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
    ReplaceRuns,
    Strip,
    StripAccents,
)
from streamtok.normalizers.elements import MOST_CARING, Elements
from streamtok.normalizers.step import BEGIN, END, FIRST

from ..encodings import make_encoding
from .cuts import check_table, table_of, waits
from .oracles import NORMALIZERS, PRE_TOKENIZERS
from .random_steps import CHARSMAP, NASTY, STEPS, random_text

KNOWN = {name: ours for name, (ours, _) in (NORMALIZERS | PRE_TOKENIZERS).items()}


def random_normalizer(rng, most):
    while True:
        try:
            return Normalizer(rng.choice(STEPS)(rng) for _ in range(rng.randint(1, most)))
        except ValueError:
            pass  # it would make texts too long


def test_random_sequences_of_steps():
    rng = random.Random(33)
    for _ in range(90):
        second = random_normalizer(rng, 2) if rng.random() < 0.4 else None
        table = ElementTable(Elements(random_normalizer(rng, 4), second))
        for _ in range(20):
            text = random_text(rng)
            if rng.random() < 0.2:
                text = rng.choice(["\udc80", "\udcff\udce9"]).join([text, random_text(rng)])
            check_table(table, text, range(1, len(text)), rng.random() < 0.5)
            check_table(table, text, [rng.randint(0, len(text)) for _ in range(3)])


@pytest.mark.parametrize("name", KNOWN)
def test_nasty_texts(name):
    table = table_of(KNOWN[name])
    for text in NASTY:
        check_table(table, text, range(1, len(text)))


@pytest.mark.parametrize("name", KNOWN)
def test_characters_of_all_planes(name):
    table = table_of(KNOWN[name])
    points = [x for x in (*range(0x3400), *range(0x3400, 0x110000, 97)) if not 0xD800 <= x < 0xE000]
    for text in ("x".join(map(chr, points)), "".join(f"{chr(x)}\u0301x" for x in points[::9])):
        check_table(table, text)


def test_what_two_normalizers_make_together():
    for first, second in ((a, b) for a in KNOWN.values() for b in list(KNOWN.values())[-4:]):
        elements = Elements(first, second)
        for text in NASTY:
            made = first.normalize(text)
            # Where something is left out before the text, it is not the first of the stream.
            wanted = {second.normalize(made, is_first) for is_first in (True, False)}
            assert elements.apply(text, BEGIN | FIRST | END) in wanted


def test_long_elements_and_many_of_them():
    table = table_of(KNOWN["NFC"], KNOWN["spaces"])
    for text in ("a" + " " * 5000 + "b", "e" + "\u0301\u0323" * 300, " " * 600 + "\n" + " " * 600):
        check_table(table, text, range(0, len(text), 321))
    rng = random.Random(5)
    marks = [chr(x) for x in range(0x300, 0x340)]
    for _ in range(4):
        text = "".join("e" + "".join(rng.choices(marks, k=5)) + "." for _ in range(6000))
        check_table(table, text)


SHY = Replace("\xad", "")
REMOVED = [
    ("k", "\xad", (SHY, Form("NFC"))), ("", "\xad", (SHY, Form("NFC"), Prepend("_"))),
    ("k", "ab", (Replace("ab", ""), Form("NFC"))), ("k", "\x01", (Nmt(), Form("NFKC"))),
    ("", "ab", (Replace("ab", ""), Form("NFC"), Prepend("_"))),
    ("d", "cab", (Replace("ab", ""), Replace("c", ""), Replace("de", ""))),
    ("k", "\u0301", (Form("NFD"), StripAccents(), Form("NFC"))),
    ("k", " ", (Strip(True, True), Form("NFC"))), ("", " ", (Strip(True, True), Form("NFC"))),
]  # fmt: skip


@pytest.mark.parametrize(("head", "unit", "steps"), REMOVED)
def test_what_a_step_removes_is_not_asked_for_again_and_again(head, unit, steps, monkeypatch):
    asked = 0
    ask = Elements.ask

    def counting(self, source, where):
        nonlocal asked
        asked += len(source)
        return ask(self, source, where)

    monkeypatch.setattr(Elements, "ask", counting)
    encoding = make_encoding(r"[\s\S]+|x", rules=TextRules(normalizer=Normalizer(steps)))
    text = head + unit * (4000 // len(unit)) + "e"
    ids = encoding.encode(text)
    assert encoding.decode(ids) == Normalizer(steps).normalize(text)
    assert asked < 3 * len(text)
    asked, stream = 0, encoding.stream_encoder()
    assert [*chain(*map(stream.encode, text)), *stream.flush()] == ids
    assert asked < 6 * len(text) or len(unit) > 1


def test_pieces_of_an_element_have_rows_of_their_own():
    def rows(text, *steps):
        table = table_of(Normalizer(steps))
        return change_elements(table, text.encode(), BEGIN | FIRST, True, True)[3]

    assert rows("aaa", Replace("aa", "a")) == [(1, 2), (1, -1)]
    assert rows("aaaa", Replace("aa", "b")) == [(1, 2), (1, 2)]
    assert rows("xaby", Replace("ab", "")) == [(1, 3), (1, -1)]
    assert rows("aby", Replace("ab", "")) == [(1, 3)]
    assert rows("ab", Replace("ab", "")) == [(0, 2)]


def test_too_many_steps_that_look_at_neighbours_are_refused():
    steps = [Replace("ab", "b")] * MOST_CARING
    Elements(Normalizer(steps))
    with pytest.raises(ValueError, match=f"{MOST_CARING + 1} steps of the normalizer look at"):
        Elements(Normalizer([*steps, Replace("ab", "b")]))


WAITING = [
    (Form("NFC"), "a. ", ""), (Form("NFC"), "中文", ""), (Form("NFKC"), "中1", ""),
    (Form("NFC"), "xe", "e"), (Form("NFC"), "xe\u0323\u0301", "e\u0323\u0301"),
    (Form("NFC"), "가\uac00", "\uac00"), (Form("NFC"), "x=", "="),
    (Form("NFD"), "x\u0301", "\u0301"), (Form("NFD"), "x\xe9", "\xe9"),
    (Form("NFKC"), "中\uff76", "\uff76"), (Strip(True, True), "a \n", " \n"),
    (Lowercase(), "ABCΣ", ""), (Prepend("x"), "a", ""), (MetaspaceText("▁", "first"), "a ", ""),
    (Replace("abac", ""), "xaba", "aba"), (ReplaceRuns(" {3,}", ""), "a  ", "  "),
    (Precompiled(CHARSMAP), "xe", "e"), (Precompiled(CHARSMAP), "x\n", "\n"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "text", "rest"), WAITING)
def test_what_waits(step, text, rest):
    assert waits(Normalizer([step]), text) == rest


def test_every_tier_finds_the_characters_that_matter():
    """One of them anywhere in blocks of others."""
    rng = random.Random(2)
    normalizers = [Normalizer([StripAccents()]), Normalizer([StripAccents(), Replace(" ", "")])]
    for _ in range(3000):
        text = "".join(rng.choices("ab~0\xd7\u0414\u4e2d\uac00\U0001f600", k=rng.randint(0, 90)))
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(["\u0301", "\u0b3e", "\U0001d165", " ", ""]) + text[at:]
        for normalizer in normalizers:
            for level in levels():
                with kernels(level):
                    result = change_elements(table_of(normalizer), text.encode(), 0, True, False)[0]
                assert result.decode() == normalizer.normalize(text), (level, ascii(text))
