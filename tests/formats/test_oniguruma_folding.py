"""Case variants of several characters: refused wherever `tokenizers` matches one."""

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
]  # fmt: skip
KEPT = [
    "ss", "ß+", "(?:ß)(?i:s)ß", "(?i:'s|'t|'re|'ve|'m|'ll|'d)", "(?i:[sdmt]|ll|ve|re)", "(?i:s|s)",
    r"(?i:\p{L}x)", "(?i:[^ß])", "(?i:s+s)", "(?i:[s][s])", r"(?i:a\p{L}b)",
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "message"), REFUSED)
def test_refused_by_name_and_position(pattern, message):
    with pytest.raises(VocabularyError, match=message):
        from_oniguruma(pattern, "here")


@pytest.mark.parametrize("pattern", KEPT)
def test_kept_and_equal(pattern):
    ours = Pattern.compile(from_oniguruma(pattern, "here"))
    for text in ("ß!ss!Ss", "aßb'S'ſ", "ÉéſﬁfixLlt", "ssß", "aXb", "'ll"):
        assert matches(ours, pattern, text)


def matches(ours, pattern, text):
    """Whether both find the same matches, one after the other."""
    theirs = Split(Regex(pattern), "removed", invert=True).pre_tokenize_str(text)
    return ours.findall(text) == [piece for piece, _ in theirs]


def test_random_patterns_that_are_not_refused_match_the_same():
    rng = random.Random(1)
    parts = ["s", "ß", "f", "i", "[st]", "[a-i]", "[^a]", r"\p{L}", "s?", "(?:", ")", "|", "t", "'",
             "[ßa]", "ſ", "n", "ʼ", r"\x{73}", "+", "(?=", "h"]  # fmt: skip
    texts = ["ßssSſ", "ﬁfiFfi", "stﬆﬅsT", "ŉʼnN'", "assfißhtan", "'ssß'ﬀff"]
    kept = 0
    for _ in range(600):
        pattern = "(?i:" + "".join(rng.choices(parts, k=rng.randint(1, 5))) + ")"
        try:
            re.compile(re.sub(r"\\p\{L\}|\\x\{73\}", "x", pattern))
            theirs = Split(Regex(pattern), "removed", invert=True)
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
