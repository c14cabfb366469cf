"""The table of a sequence of steps makes of a text, cut anywhere, what the steps make of it."""

import random

import pytest

from streamtok._core.encode import ElementTable, change_elements
from streamtok.normalizers import Normalizer, Replace
from streamtok.normalizers.elements import MOST_CARING, Elements
from streamtok.normalizers.step import BEGIN, END, FIRST

from .oracles import NORMALIZERS, PRE_TOKENIZERS
from .random_steps import NASTY, STEPS, random_text

KNOWN = {name: ours for name, (ours, _) in (NORMALIZERS | PRE_TOKENIZERS).items()}
NOTHING = Normalizer()


def utf8(text):
    return text.encode("utf-8", "surrogateescape")


def check_rows(rows, text, source):
    """They cover both texts. Neither side of one is empty unless no text is left."""
    assert sum(now for now, _ in rows) == len(text)
    assert sum(now if before < 0 else before for now, before in rows) == len(source)
    assert not text or all(now and before for now, before in rows)
    at = start = 0
    for now, before in rows:
        if before < 0:
            assert text[at : at + now] == source[start : start + now]
        at += now
        start += now if before < 0 else before


def check(table, text, cuts=(), is_first=True):
    """As the steps make it of the whole text, in one call and cut."""
    begins = BEGIN | FIRST * is_first
    expected = utf8(table.elements.apply(text, begins | END))
    made, rest, _, rows = change_elements(table, utf8(text), begins, True, True)
    assert (made, rest) == (expected, b"")
    check_rows(rows, made, utf8(text))
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts, held = [], b""
    for number, stop in enumerate(places[1:], 1):
        held += utf8(text[places[number - 1] : stop])
        made, rest, *_ = change_elements(table, held, begins, number + 1 == len(places), False)
        parts.append(made)
        if len(rest) < len(held):
            begins = 0
        held = rest
    assert (b"".join(parts), held) == (expected, b"")


def random_normalizer(rng, most):
    while True:
        try:
            return Normalizer(rng.choice(STEPS)(rng) for _ in range(rng.randint(1, most)))
        except ValueError:
            pass  # it would make texts too long


def test_random_sequences_of_steps():
    rng = random.Random(33)
    for _ in range(150):
        second = random_normalizer(rng, 2) if rng.random() < 0.4 else None
        table = ElementTable(Elements(random_normalizer(rng, 4), second))
        for _ in range(20):
            text = random_text(rng)
            if rng.random() < 0.2:
                text = rng.choice(["\udc80", "\udcff\udce9"]).join([text, random_text(rng)])
            check(table, text, range(1, len(text)), rng.random() < 0.5)
            check(table, text, [rng.randint(0, len(text)) for _ in range(3)])


@pytest.mark.parametrize("name", KNOWN)
def test_nasty_texts(name):
    table = ElementTable(Elements(KNOWN[name]))
    for text in NASTY:
        check(table, text, range(1, len(text)))
    for text in [a + b for a in NASTY[::7] for b in NASTY[::5]]:
        check(table, text, [1, len(text) // 2])


@pytest.mark.parametrize("name", KNOWN)
def test_characters_of_all_planes(name):
    table = ElementTable(Elements(KNOWN[name]))
    points = [x for x in (*range(0x3400), *range(0x3400, 0x110000, 97)) if not 0xD800 <= x < 0xE000]
    for text in ("x".join(map(chr, points)), "".join(f"{chr(x)}\u0301x" for x in points[::9])):
        check(table, text)


def test_what_two_normalizers_make_together():
    for first, second in ((a, b) for a in KNOWN.values() for b in list(KNOWN.values())[-4:]):
        elements = Elements(first, second)
        for text in NASTY:
            made = first.normalize(text)
            state, blocks = first.begin(), first.feed(first.begin(), text, True)[1]
            assert state == first.begin()
            is_first = not next((not new for new, old in blocks if new or old), False)
            assert elements.apply(text, BEGIN | FIRST | END) == second.normalize(made, is_first)


def test_long_elements_and_many_of_them():
    table = ElementTable(Elements(KNOWN["NFC"], KNOWN["spaces"]))
    for text in ("a" + " " * 5000 + "b", "e" + "\u0301\u0323" * 300, " " * 600 + "\n" + " " * 600):
        check(table, text, range(0, len(text), 321))
    rng = random.Random(5)
    marks = [chr(x) for x in range(0x300, 0x340)]
    for _ in range(4):
        text = "".join("e" + "".join(rng.choices(marks, k=5)) + "." for _ in range(6000))
        check(table, text)


def test_pieces_of_an_element_have_rows_of_their_own():
    def rows(text, *steps):
        table = ElementTable(Elements(Normalizer(steps)))
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
