"""Splits with every behavior, in sequences, against Hugging Face's pre-tokenizers."""

from __future__ import annotations

import functools
import itertools
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex
from tokenizers import pre_tokenizers as pre

from streamtok import UnsupportedPatternError
from streamtok.formats.oniguruma import from_oniguruma
from streamtok.patterns.sequence import SplitSequence
from streamtok.patterns.splits import BEHAVIORS

PARTS = [
    r"\p{N}", r"[ab]+", r"\s+", r"\s", r"[一-龥]+", r" ?\p{L}+|\s+(?!\S)|\s", r"'s|\w", r"ab", r" ",
    r"\w+|[^\w\s]+", r"[^ ]+", r"\p{N}{1,3}", r"[\s\S]",
]  # fmt: skip
TEXTS = st.text("aab1 2!'\n \r日\u200d\u0301s", max_size=12)


def theirs(splits: tuple[tuple[str, str], ...]) -> pre.PreTokenizer:
    """Each behavior in one of the two ways in which it can be said."""
    made = []
    for place, (pattern, behavior) in enumerate(splits):
        said = {
            "isolated": [("isolated", False), ("isolated", True)],
            "with previous": [("merged_with_previous", False), ("merged_with_next", True)],
            "with next": [("merged_with_next", False), ("merged_with_previous", True)],
            "contiguous": [("contiguous", False), ("contiguous", True)],
            "removed": [("removed", False)],
            "only": [("removed", True)],
        }[behavior]
        kind, invert = said[place % len(said)]
        made.append(pre.Split(Regex(pattern), kind, invert))
    return pre.Sequence(made)


@functools.lru_cache(maxsize=512)
def sequence(splits: tuple[tuple[str, str], ...]) -> SplitSequence | None:
    try:
        return SplitSequence([(from_oniguruma(p, "here"), behavior) for p, behavior in splits])
    except UnsupportedPatternError:
        return None


@settings(max_examples=250)
@given(
    st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(BEHAVIORS)), min_size=1, max_size=3),
    st.lists(TEXTS, min_size=20, max_size=20),
)
def test_against_tokenizers(splits, samples):
    mine = sequence(tuple(splits))
    if mine is None:
        return
    other = theirs(tuple(splits))
    for text in samples:
        assert mine.findall(text) == [part for part, _ in other.pre_tokenize_str(text)], text


def test_most_are_supported():
    alone = {b: sum(sequence(((p, b),)) is not None for p in PARTS) for b in BEHAVIORS}
    assert alone["isolated"] == alone["only"] == len(PARTS)
    assert min(alone.values()) >= len(PARTS) - 5, alone
    pairs = itertools.product(itertools.product(PARTS[:3], BEHAVIORS), repeat=2)
    done = sum(sequence(pair) is not None for pair in pairs)
    assert done >= 280, done


def test_a_space_that_is_a_mark():
    mine = SplitSequence([(" ", "with previous")], spaces_are_marks=True)
    assert mine.findall("a b  c") == ["a b  c"]
    mine = SplitSequence([("\u2581", "with next")], spaces_are_marks=True)
    assert mine.findall("a b  c") == ["a", " b", " ", " c"]
    again = pickle.loads(pickle.dumps(mine))
    assert again.source == mine.source
    assert again.findall("a b") == ["a", " b"]
    assert mine.source != SplitSequence([("\u2581", "with next")]).source


def test_a_long_sequence():
    """More pages of classes together than a number of 64 bits can count."""
    kinds = ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl", "No", "Pd", "Po", "Sc", "Sm"]
    splits = tuple((rf"\p{{{kind}}}", "isolated") for kind in kinds)
    mine, other = sequence(splits), theirs(splits)
    text = "aBǅʰ一\u0301\u09031Ⅷ²-!$+ \n日本éЖ٣\u20ac" * 2
    assert mine.findall(text) == [part for part, _ in other.pre_tokenize_str(text)]
