"""Added tokens with flags: the choices of `tokenizers`, at every cut."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

import streamtok
from streamtok._core.encode import SpecialMatcher
from streamtok.engines.rules import TextRules, TokenFlags


def test_words_and_blanks_are_those_of_tokenizers():
    alphabet = {letter: id for id, letter in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    theirs = Tokenizer(models.BPE(alphabet, []))
    theirs.add_tokens([AddedToken("QQ", single_word=True), AddedToken("ZZ", lstrip=True)])
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    ours = streamtok.load(theirs)
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    points = [c for c in points if c < 0x3200 or c % 97 == 0]
    for char in map(chr, points):
        text = f"{char}QQ {char}ZZ"
        assert ours.encode(text, allowed_special="all") == theirs.encode(text).ids, hex(ord(char))


def test_many_added_tokens():
    tokens = [(f"<unused{i}>", i) for i in range(6400)]
    matcher = SpecialMatcher(tokens, {text for text, _ in tokens}, ())
    text = b"x<unused6399><unused6400><unused0>"
    found = [(0, 1, -1), (1, 13, 6399), (13, 25, -1), (25, 34, 0), (34, 34, -1)]
    assert matcher.split(text) == found
    refusing = SpecialMatcher(tokens, (), ["<unused7>"])
    assert refusing.split(text + b"<unused7>") == [(34, 43, None)]


def test_rules_that_are_not_used_are_not_in_digests():
    assert repr(TextRules()) == "TextRules()"
    assert np.all([rules == TextRules() for rules in (TextRules(), TextRules(token_flags=()))])
    with pytest.raises(ValueError, match="twice"):
        TextRules(token_flags=(("a", TokenFlags()), ("a", TokenFlags())))
