"""Added tokens with flags: the choices of `tokenizers`, at every cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from streamtok._core.encode import SpecialMatcher, utf8_size
from streamtok.engines.added_tokens import (
    GOES_ON,
    NOTHING_FOUND,
    Finder,
    Finding,
    can_overlap,
    is_word,
)
from streamtok.engines.rules import TextRules, TokenFlags

from .slow_added_tokens import find_added_tokens

LETTERS = "ab \n<\u00e9\U0001f600"
FLAGS = st.builds(TokenFlags, st.just(False), st.booleans(), st.booleans(), st.booleans())
TOKENS = st.dictionaries(st.text(LETTERS, min_size=1, max_size=3), FLAGS, min_size=1, max_size=6)


def finder(tokens: dict[str, TokenFlags]) -> tuple[Finder, dict[str, tuple[int, TokenFlags]]]:
    order = sorted(tokens, key=lambda text: -len(text.encode()))
    known = {text: (i, tokens[text]) for i, text in enumerate(order)}
    matcher = SpecialMatcher([(text, known[text][0]) for text in order], set(tokens), ())
    return Finder(matcher, [known[text] for text in matcher.specials]), known


def joined(events: list) -> list[tuple[int | None, str]]:
    found: list[tuple[int | None, str]] = []
    is_open = False
    for text, _, id in events:
        if text and is_open:
            found[-1] = (None, found[-1][1] + text)
        elif text:
            found.append((None, text))
        is_open = id == GOES_ON and (is_open or bool(text))
        if id is not None and id != GOES_ON:
            found.append((id, ""))
    return found


@given(TOKENS, st.lists(st.sampled_from([*LETTERS, "  ", "ab"]), max_size=12).map("".join))
def test_finds_what_the_slow_way_finds_at_every_cut(tokens, text):
    fast, known = finder(tokens)
    expected = find_added_tokens(text, known)
    for step in (1, 2, 3, len(text) + 1):
        state, events = NOTHING_FOUND, []
        for i in range(0, len(text), step):
            state, found, refused = fast.feed(state, text[i : i + step], False)
            assert refused is None
            assert Finding.from_json(list(state)) == state
            events += found
        state, found, _ = fast.feed(state, "", True)
        events += found
        assert state == NOTHING_FOUND
        assert "".join(text + taken for text, taken, _ in events) == text
        assert joined(events) == expected


def test_words_and_blanks_are_those_of_tokenizers():
    theirs = Tokenizer(models.BPE(vocab={}, merges=[]))
    theirs.add_tokens([AddedToken("QQ", single_word=True), AddedToken("ZZ", lstrip=True)])
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    fast, _ = finder({"ZZ": TokenFlags(lstrip=True)})
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    points = [c for c in points if c < 0x3200 or c % 97 == 0]
    for char in map(chr, points):
        assert is_word(char) == (not theirs.encode(char + "QQ").ids), hex(ord(char))
        events = fast.feed(NOTHING_FOUND, char + "ZZ", True)[1]
        is_blank = theirs.encode(char + "ZZ").offsets[0] == (0, 3)
        assert (events[0][1] == char + "ZZ") == is_blank, hex(ord(char))


@given(
    st.lists(st.text(LETTERS, min_size=1, max_size=3), unique=True, max_size=5),
    st.text(LETTERS + "\udc80", max_size=12),
    st.integers(0, 12),
    st.booleans(),
)
def test_finds_in_characters(tokens, text, at, final):
    order = sorted(tokens, key=lambda token: -len(token.encode()))
    matcher = SpecialMatcher([(token, i) for i, token in enumerate(order)], set(order), ())
    at = min(at, len(text))
    expected, place = [], at
    while place < len(text):
        rest = text[place:]
        if not final and any(t.startswith(rest) and t != rest for t in order):
            break
        here = [i for i, token in enumerate(order) if rest.startswith(token)]
        if here:
            expected.append((place, place + len(order[here[0]]), here[0]))
            place += len(order[here[0]])
        else:
            place += 1
    assert matcher.finds(text, at, final) == (place, tuple(expected) if not tokens else expected)


def test_many_added_tokens():
    tokens = [(f"<unused{i}>", i) for i in range(6400)]
    matcher = SpecialMatcher(tokens, {text for text, _ in tokens}, ())
    text = "x<unused6399><unused6400><unused0>"
    assert matcher.finds(text, 0, True) == (34, [(1, 13, 6399), (25, 34, 0)])
    assert SpecialMatcher(tokens, (), ["<unused7>"]).finds(text + "<unused7>", 0, True) == (
        43, [(34, 43, -1)],
    )  # fmt: skip


@given(st.text("a\u00e9\u3042\U0001f600\udc80\udcff", max_size=300))
def test_utf8_size(text):
    assert utf8_size(text) == len(text.encode("utf-8", "surrogateescape"))


def test_overlaps():
    assert can_overlap(["ab"], ["bc"])
    assert can_overlap(["bc"], ["ab"])
    assert can_overlap(["abc"], ["b"])
    assert not can_overlap(["ab"], ["cd"])
    assert not can_overlap(["ab", "ba"], [])
    assert can_overlap(["a" * 300], ["b"])  # finding out would take long


@pytest.mark.parametrize(
    "value",
    [
        ["a", 0, False], ["a", 2, False, False], [1, 0, False, False], ["a", 1, False, False],
        ["a", -1, False, False], ["a", 0, 0, False], "abcd",
    ],
)  # fmt: skip
def test_forged_states(value):
    with pytest.raises((ValueError, TypeError)):
        Finding.from_json(value)


def test_rules_that_are_not_used_are_not_in_digests():
    assert repr(TextRules()) == "TextRules()"
    assert np.all([rules == TextRules() for rules in (TextRules(), TextRules(token_flags=()))])
    with pytest.raises(ValueError, match="normalizer must be None"):
        TextRules(normalizer="NFX")
    with pytest.raises(ValueError, match="twice"):
        TextRules(token_flags=(("a", TokenFlags()), ("a", TokenFlags())))
    with pytest.raises(ValueError, match="goes with neither"):
        TextRules(normalizer="spaces", token_flags=(("a", TokenFlags()),))
