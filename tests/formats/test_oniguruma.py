"""Oniguruma's patterns: sets within sets, and case variants of several characters."""

from __future__ import annotations

import random
import re

import pytest
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from streamtok.errors import VocabularyError
from streamtok.formats.oniguruma import from_oniguruma
from streamtok.patterns.pattern import Pattern

REFUSED = [
    ("(?i:ß)", "'ß' at position 4"), ("(?i:ss)", "'s' at position 5"), ("a(?i:'s|ﬁ)", "'ﬁ'"),
    ("(?i:s(?:s))", "'s' at position 8"), ("(?i:[ß-ÿ])", r"'\[ß-ÿ\]' at position 4"),
    (r"(?i:[\p{L}]x)", "position 4"), (r"(?i:\x{df})", "position 4"), ("(?i:ſs)", "'ſ' at"),
    ("(?i:İ+)", "'İ' at position 4"), (r"(?i:a(?:b|fi))", "'i'"), (r"(?i:\u0073)", "position 4"),
    (r"(?i:\x{73}\x{53})", "position 4"), ("(?i:[a-zẞ])", "position 4"), ("(?i:é)", "position 4"),
    ("(?i:ss?)", "position 5"),
    *((one, "is a nested set") for one in (
        "[a[^b]]", "[a-[b]]", "[a&&[b]]", "[a[b]-c]", "[[:alpha:]a]", "[]a[b]]"
    )),
]  # fmt: skip
KEPT = [
    "ss", "ß+", "(?:ß)(?i:s)ß", "(?i:'s|'t|'re|'ve|'m|'ll|'d)", "(?i:[sdmt]|ll|ve|re)", "(?i:s|s)",
    r"(?i:\p{L}x)", "(?i:[^ß])", "(?i:s+s)", "(?i:[s][s])", r"(?i:a\p{L}b)",
]  # fmt: skip
NESTED = [  # as in BLOOM's pattern
    r" ?[^(\s|[.,!?…。，、।۔،])]+", "[a[bc]d]+", "[^[a]]+", "[^a[b]]", r"[x[\]\-y]]",
    r"[\[a[b]]+", r"\[a[b[c]]", "[a-c[d-f]g-]+", "[a][b[c]d]+", r"[^\s\p{L}[\d_]]+",
]  # fmt: skip
LETTERS = "abcdefgxy-[]|&()\\ .,!?…。，^1_é\n日"


@pytest.mark.parametrize(("pattern", "message"), REFUSED)
def test_refused_by_name_and_position(pattern: str, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        from_oniguruma(pattern, "here")


@pytest.mark.parametrize("pattern", [*KEPT, *NESTED])
def test_kept_and_equal(pattern: str) -> None:
    ours, theirs = Pattern.compile(from_oniguruma(pattern, "here")), split_by(pattern)
    rng = random.Random(pattern)
    texts = ["ß!ss!Ss", "aßb'S'ſ", "ÉéſﬁfixLlt", "ssß", "aXb", "'ll"]
    if pattern in NESTED:
        texts = ["".join(rng.choices(LETTERS, k=rng.randint(1, 10))) for _ in range(100)]
    for text in texts:
        assert ours.findall(text) == [piece for piece, _ in theirs.pre_tokenize_str(text)]


def split_by(pattern: str) -> Split:
    """What leaves its matches."""
    return Split(Regex(pattern), "removed", invert=True)


def test_random_patterns_that_are_not_refused_match_the_same() -> None:
    rng = random.Random(1)
    parts = ["s", "ß", "f", "i", "[st]", "[a-i]", "[^a]", r"\p{L}", "s?", "(?:", ")", "|", "t", "'",
             "[ßa]", "ſ", "n", "ʼ", r"\x{73}", "+", "(?=", "h"]  # fmt: skip
    texts = ["ßssSſ", "ﬁfiFfi", "stﬆﬅsT", "ŉʼnN'", "assfißhtan", "'ssß'ﬀff"]
    kept = 0
    for _ in range(600):
        pattern = "(?i:" + "".join(rng.choices(parts, k=rng.randint(1, 5))) + ")"
        try:
            re.compile(re.sub(r"\\p\{L\}|\\x\{73\}", "x", pattern))
            theirs = split_by(pattern)
            ours = Pattern.compile(from_oniguruma(pattern, "here"))
        except Exception:
            continue
        if any(ours.findall("") or not piece for text in texts for piece in ours.findall(text)):
            continue
        kept += 1
        for text in texts:
            expected = [piece for piece, _ in theirs.pre_tokenize_str(text) if piece]
            assert ours.findall(text) == expected, (pattern, text)
    assert kept > 60
