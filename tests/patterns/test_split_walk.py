"""Splits in Python: what the automaton of the same split cuts, at any cut of the text."""

import json
import random

import pytest
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split as TheirSplit

from streamtok.patterns.pattern import Pattern
from streamtok.patterns.pretoken_walk import BEGIN as WALK_BEGIN
from streamtok.patterns.pretoken_walk import PretokenWalk
from streamtok.patterns.split_walk import BEGIN, SplitWalk

PATTERNS = ["a+b|a|b", r"\s+", "ab", "a(?=b)", r" ?\p{L}+|\s+(?!\S)", "[ab]{1,3}", "é|日"]
BEHAVIORS = {
    "isolated": ("isolated", False), "removed": ("removed", False), "only": ("removed", True),
    "with previous": ("merged_with_previous", False), "with next": ("merged_with_next", False),
    "contiguous": ("contiguous", False),
}  # fmt: skip


def in_chunks(walk, begin, chunks):
    """What comes out, through saved states."""
    state, found = begin, []
    for number, chunk in enumerate(chunks, 1):
        state, pieces = walk.feed(state, chunk, number == len(chunks))
        assert walk.check_state(json.loads(json.dumps(state))) == state
        found += pieces
    assert "".join(piece for piece, _ in found) == "".join(chunks)
    return [piece for piece, is_kept in found if is_kept]


def chunks_of(rng, text):
    cuts = sorted(rng.choices(range(len(text) + 1), k=rng.randint(1, 4)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize("behavior", BEHAVIORS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_split_as_in_tokenizers(pattern, behavior):
    rng = random.Random(pattern + behavior)
    walk = SplitWalk(pattern, behavior)
    name, invert = BEHAVIORS[behavior]
    theirs = TheirSplit(Regex(pattern), name, invert=invert)
    for _ in range(60):
        text = "".join(rng.choices("aabb é日\n", k=rng.randint(0, 9)))
        expected = [piece for piece, _ in theirs.pre_tokenize_str(text)]
        assert walk.cut(text) == expected, text
        assert in_chunks(walk, BEGIN, chunks_of(rng, text)) == expected, text
        assert in_chunks(walk, BEGIN, [*text, ""]) == expected, text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pretokens_as_the_automaton_finds_them(pattern):
    rng = random.Random(pattern)
    automaton = Pattern.compile(pattern)
    walk = PretokenWalk(automaton)
    for _ in range(100):
        text = "".join(rng.choices("aaabb é日\n\udc80", k=rng.randint(0, 9)))
        assert in_chunks(walk, WALK_BEGIN, chunks_of(rng, text)) == automaton.findall(text), text


def test_what_waits_for_a_look_ahead():
    walk = SplitWalk("ab", "isolated")
    state, pieces = walk.feed(BEGIN, "xa", False)
    assert (walk.held(state), pieces) == ("xa", [])
    state, pieces = walk.feed(state, "b", False)
    assert (walk.held(state), pieces) == ("xab", [])  # the end of a match is seen behind it
    assert walk.feed(state, "c", True)[1] == [("x", True), ("ab", True), ("c", True)]
