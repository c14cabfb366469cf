"""A normalizer's table makes of every text what its steps make, and says where it is from."""

import random
from itertools import pairwise

import numpy as np
import pytest

from streamtok._core._testing import kernels, levels
from streamtok._core.encode import transform
from streamtok.normalizers import (
    BertAccents,
    BertChinese,
    BertClean,
    Form,
    JoinedSpaces,
    LongestMap,
    Lowercase,
    MetaspaceText,
    Nmt,
    Normalizer,
    Precompiled,
    PrefixSpace,
    Prepend,
    Replace,
    ReplaceRuns,
    Strip,
    StripAccents,
    UnknownRuns,
)
from streamtok.normalizers.charsmap import write_charsmap
from streamtok.normalizers.compiled import AT_BEGIN, AT_END, AT_FIRST, compiled, marked, rows_of

from ..nasty import TEXTS
from .oracles import NORMALIZERS, PRE_TOKENIZERS

KNOWN = {name: ours for name, (ours, _) in (NORMALIZERS | PRE_TOKENIZERS).items()}
NASTY = [text.decode("utf-8", "ignore") for text in TEXTS]
CHARSMAP = write_charsmap(
    {
        "e\u0301": "é", "\n": " ", "\t": "", "ﬁ": "fi", "İ": "I", "\u3000": " ", "A": "a\u0301",
        "か\u3099": "が", "\u00a8": " \u0308", "\u00a8\u0301": " \u0308\u0301", "a\u0301": "",
    }
)  # fmt: skip
CHARACTERS = (
    "aeiAEIbΣσςİIſKﬁ<>= \t\n\x00\x1c\x7f\x85\xa0\u1680\u200b\u2028\u3000\ufeff\ufffd▁中文字゛ﾊﾟか"
    "\u3099\uac00\uac01\u1100\u1161\u11a8\u0958\u0344\u2126\u212b\uf900\u1e0b\u0323\u0301\u0301"
    "\u0316\u0334éÉ\u00a8\r\n\u200d\U0001f469\U0001f1eb\U0001f1f7न\u094d\u093cक\u08ca\u1715xyz0'"
)
STEPS = [
    *(lambda r, form=form: Form(form) for form in ("NFC", "NFD", "NFKC", "NFKD")),
    lambda r: Lowercase(),
    lambda r: StripAccents(),
    lambda r: Nmt(),
    lambda r: BertClean(),
    lambda r: BertChinese(),
    lambda r: BertAccents(),
    lambda r: Strip(r.random() < 0.5, r.random() < 0.5),
    lambda r: Prepend(r.choice(["▁", "ab", "\u0301", " "])),
    lambda r: Replace(r.choice(" ▁"), r.choice(" ▁")),
    lambda r: Replace(some(r, 1, 3), some(r, 0, 3)),
    lambda r: Replace(r.choice("ab e"), r.choice(["", "aa", "b", "e\u0301"])),
    lambda r: ReplaceRuns(r.choice([r"\s+", " {2,}", "[^a-z]+", r"[\n\t=]{3,}"]), some(r, 0, 1)),
    lambda r: ReplaceRuns("[A-Z9]", "<>"),
    lambda r: Precompiled(CHARSMAP),
    lambda r: LongestMap(CHARSMAP, ("<e>", "ab"), r.random() < 0.5),
    lambda r: JoinedSpaces(r.random() < 0.5),
    lambda r: UnknownRuns("abcxyz e中", "\ue000"),
    lambda r: MetaspaceText("▁", r.choice(["always", "first", "never"])),
    lambda r: PrefixSpace(),
]


def some(rng, least, most):
    return "".join(rng.choices(CHARACTERS, k=rng.randint(least, most)))


def random_text(rng):
    few = rng.choices(CHARACTERS, k=rng.randint(1, 8)) if rng.random() < 0.7 else CHARACTERS
    text = "".join(rng.choice(few) for _ in range(rng.choice([0, 1, 2, 3, 5, 9, 30, 200])))
    return text + rng.choice(NASTY) if rng.random() < 0.3 else text


def table_of(*normalizers):
    found = compiled(*normalizers)
    assert found is not None
    return found.transform


def changed(table, text, begins=0, ends=True):
    """(the result, what was not taken in, rows)."""
    result, rest, rows = transform(table, text, begins, ends, True)
    assert text.endswith(rest)
    taken = text[: len(text) - len(rest)]
    rows = np.frombuffer(rows, np.int64).reshape(-1, 3)
    result = taken if result is None else result.decode()
    assert (rows[:, 0] * rows[:, 1]).sum() == len(result.encode())
    assert (rows[:, 0] * rows[:, 2]).sum() == len(taken.encode())
    without = transform(table, text.encode(), begins, ends, False)
    assert (taken if without[0] is None else without[0].decode(), *without[1:]) == (
        result, rest, None,
    )  # fmt: skip
    return result, rest, [tuple(row) for row in rows.tolist()]


def check(normalizer, table, text, cut, is_first=True):
    """The tables must be right, also where the text is cut."""
    expected = normalizer.normalize(text, is_first)
    begins = AT_BEGIN | AT_FIRST * is_first
    assert changed(table, text, begins)[:2] == (expected, "")
    result, rest, _ = changed(table, text[:cut], begins, False)
    if len(rest) < cut:  # or else the stretch has not begun yet
        begins = 0
    if rest + text[cut:]:
        assert result + changed(table, rest + text[cut:], begins)[0] == expected


def test_random_sequences_of_steps():
    rng = random.Random(33)
    done = 0
    while done < 2000:
        try:
            steps = [rng.choice(STEPS)(rng) for _ in range(rng.choice([1, 1, 2, 2, 3, 4]))]
            normalizer = Normalizer(steps)
        except ValueError:
            continue  # it would make texts too long
        if compiled(normalizer) is None:
            continue
        table = table_of(normalizer)
        for _ in range(30):
            text = random_text(rng)
            cut = rng.randint(0, len(text))
            check(normalizer, table, text, cut, rng.random() < 0.5)
            done += 1


@pytest.mark.parametrize("name", KNOWN)
def test_nasty_texts(name):
    normalizer = KNOWN[name]
    table = table_of(normalizer)
    rng = random.Random(name)
    for text in [*NASTY, *(a + b for a in NASTY[::7] for b in NASTY[::5])]:
        check(normalizer, table, text, rng.randint(0, len(text)))


@pytest.mark.parametrize("name", KNOWN)
def test_characters_of_all_planes(name):
    normalizer = KNOWN[name]
    table = table_of(normalizer)
    points = [x for x in (*range(0x3400), *range(0x3400, 0x110000, 97)) if not 0xD800 <= x < 0xE000]
    for text in ("x".join(map(chr, points)), "".join(f"{chr(x)}\u0301x" for x in points[::9])):
        assert changed(table, text, AT_BEGIN | AT_FIRST)[0] == normalizer.normalize(text)


@pytest.mark.parametrize("name", [name for name in KNOWN if len(KNOWN[name].spec) == 1])
def test_rows_are_those_of_the_steps_blocks_character_by_character(name):
    normalizer = KNOWN[name]
    table = table_of(normalizer)
    rng = random.Random(name)
    for _ in range(200):
        text = random_text(rng)
        state, blocks = normalizer.begin(), []
        for char in [*text, ""]:
            state, new = normalizer.feed(state, char, not char)
            blocks += marked(new)
        expected = [row for row in rows_of(blocks)]
        assert changed(table, text, AT_BEGIN | AT_FIRST)[2] == expected


def test_what_two_normalizers_make_together():
    first, second = Normalizer([Lowercase(), Strip(False, True)]), KNOWN["always"]
    table = table_of(first, second)
    for text in NASTY:
        found = changed(table, text, AT_BEGIN | AT_FIRST)
        assert found[0] == second.normalize(first.normalize(text))


def test_long_elements_and_many_of_them():
    normalizer = Normalizer([Form("NFC"), ReplaceRuns(" {2,}", "▁")])
    table = table_of(normalizer)
    for text in ("a" + " " * 5000 + "b", "e" + "\u0301\u0323" * 300, " " * 600 + "\n" + " " * 600):
        check(normalizer, table, text, 4321)
    rng = random.Random(5)
    marks = [chr(x) for x in range(0x300, 0x340)]
    for _ in range(4):
        text = "".join("e" + "".join(rng.choices(marks, k=5)) + "." for _ in range(6000))
        assert changed(table, text, AT_BEGIN)[0] == normalizer.normalize(text)


def test_what_has_no_table():
    assert compiled(Normalizer()) is None


def test_elements_that_move_borders_of_the_next_table():
    normalizer = Normalizer([Replace("bc", "d"), Replace("da", "!")])
    table = table_of(normalizer)
    assert changed(table, "bca") == ("!", "", [(1, 1, 3)])
    assert changed(table, "bad") == ("bad", "", [(3, 1, 1)])
    assert changed(table, "da", AT_BEGIN | AT_END) == ("!", "", [(1, 1, 2)])
    assert changed(table, "xbc", 0, False) == ("x", "bc", [(1, 1, 1)])


def test_a_table_for_each_of_many_steps():
    letters = "abcdefghijklmnopqrstuvwxyz"
    steps = [Replace(2 * a, b) for a, b in pairwise(letters)]
    table = table_of(Normalizer(steps))
    assert changed(table, "x" + "a" * 16) == ("xe", "", [(1, 1, 1), (1, 1, 16)])
    assert changed(table, "x" + "a" * 16, 0, False)[:2] == ("", "x" + "a" * 16)
    assert compiled(Normalizer(steps * 3)) is None


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
                    result = changed(table_of(normalizer), text)[0]
                assert result == normalizer.normalize(text), (level, ascii(text))
