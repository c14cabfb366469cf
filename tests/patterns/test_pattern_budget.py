"""Hostile patterns: each ends in bounded work, with tables or with an error that says why."""

from __future__ import annotations

import itertools
import json
import random
import string
from pathlib import Path

import pytest

from streamtok.errors import PatternError, UnsupportedPatternError
from streamtok.patterns import budget as pattern_budget
from streamtok.patterns.dfa import compile_tables
from streamtok.patterns.sequence import SplitSequence

from ..encodings import make_encoding
from ..new_process import python
from .test_pattern import REAL

# Patterns of a few bytes to 64 KiB that ask for a great deal, each in another way.
MANY = "".join(map(chr, range(0x4E00, 0x4E00 + 8_000)))
HOSTILE = {
    "repeats": r"((a{1,20}){1,20}){1,20}",
    "repeats of more": r"(?:ab|cd|a|c|abcd){1,300}(?:ab|cd|a|c|abcd){1,300}",
    "large counts": r"(?:(?:a{1000}){1000}){1000}",
    "a larger count": "a{1,1000000}",
    "many repeats": "a{1000}" * 9_000,
    "exponential": r"[ab]*a[ab]{20}",
    "options": "|".join(f"a{i}b" for i in range(5_000)),
    "empty options": "(?:" + "|" * 60_000 + ")a",
    "sets": "".join(f"[{a}-{b}]" for a, b in zip(MANY, MANY[50:], strict=False)),
    "pairs": "|".join(map("".join, itertools.pairwise(MANY))),
    "properties": r"\p{L}" * 13_000,
    "folded letters": "(?i:" + "ab" * 30_000 + ")",
    "look-ahead": f"a(?!{'|'.join(MANY)})",
    "flags": "(?i:" * 90 + "a" + ")" * 90,
    "broken flags": "(?" * 32_000,
    "possessive": "a{1,1000}+" * 60 + "b",
    "atomic in atomic": "(?>" * 90 + "a{1,90}b" + ")" * 90,
    "a chain": r"a{1000}b{1000}c{1000}d{1000}|[\s\S]",
    "classes": MANY[:250] * 10 + r"|[\s\S]",
    "states and classes": "|".join(f"{c}{{2,40}}" for c in string.ascii_letters) + r"|[\s\S]",
    "long": "a" * 65_536,
    "too long": "a" * 65_537,
    "nesting": "(" * 30_000 + "a" + ")" * 30_000,
    "unclosed sets": "[" * 60_000,
    "unclosed escapes": r"\p{" * 20_000,
    "a comment before a repeat": "(?x)(?:a{1000})#c\n{1000}(?<=b)",
    "repeats after look-behind": "(?<=x)(?:(?:a{1000}){1000}){1000}",
    "nesting after look-behind": "(?<=x)" + "(" * 5_000 + "a" + ")" * 5_000,
}


TABLES = ["flags", "a chain", "classes", "atomic in atomic", "look-ahead"]
REFUSED = ["large counts", "many repeats", "too long", "repeats after look-behind"]


def test_hostile_patterns_end_in_bounded_work_and_memory(tmp_path: Path) -> None:
    """Other ones each time, in one process of 2 GiB that would be killed: some took hours."""
    known = {"tables": TABLES, "refused": REFUSED}
    some = [name for names in known.values() for name in random.sample(names, 2)]
    some += random.sample(sorted(HOSTILE.keys() - {*TABLES, *REFUSED}), 6)
    source = """
import json, resource, sys
import streamtok
from streamtok.errors import PatternError
resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
singles = {bytes([i]): i for i in range(256)}
outcomes = {}
for name, source in json.load(open(sys.argv[1])).items():
    try:
        made = streamtok.Encoding(
            "x", pat_str=source, mergeable_ranks=singles, special_tokens={}
        )
        if made.pattern:
            made.pattern.windows, made.pattern.settled, made.pattern.is_total
            outcomes[name] = "tables"
        else:
            outcomes[name] = "whole texts"
    except PatternError as error:
        assert len(str(error)) < 300, name
        outcomes[name] = "refused"
print(json.dumps(outcomes))
"""
    (tmp_path / "patterns.json").write_text(json.dumps({name: HOSTILE[name] for name in some}))
    outcomes = json.loads(python(source, tmp_path / "patterns.json", timeout=600))
    assert outcomes.keys() == set(some)
    assert set(outcomes.values()) <= {"tables", "whole texts", "refused"}
    for outcome, names in known.items():
        assert {outcomes[name] for name in names if name in some} == {outcome}


@pytest.mark.parametrize("name", ["repeats", "pairs", "folded letters", "possessive", "options"])
def test_what_tables_take_is_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_budget, "MAX_STEPS", 2_000)
    with pytest.raises(UnsupportedPatternError, match="take more than 2000 steps"):
        compile_tables(HOSTILE[name])


@pytest.mark.parametrize("name", REAL)
def test_patterns_in_use_take_a_tenth_of_the_budget(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_budget, "MAX_STEPS", pattern_budget.MAX_STEPS // 10)
    compile_tables(REAL[name])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("(?<=x)(?:(?:a{1000}){1000}){1000}", "may have more than 1000000 characters"),
        ("(?<=x)b{0000000000999999}", "use smaller counts"),
        ("(?i-sx:(?<=x)a{1 0 0})", "the flag 'x' is not supported"),
        ("a" * 65_537, "has 65537 characters, more than 65536"),
    ],
)
def test_patterns_too_large_for_any_use(source: str, message: str) -> None:
    with pytest.raises(PatternError, match=message) as caught:
        make_encoding(source)
    assert not isinstance(caught.value, UnsupportedPatternError)
    with pytest.raises(PatternError):
        SplitSequence([source])


def test_sequences_of_too_many_splits_are_refused() -> None:
    with pytest.raises(UnsupportedPatternError, match="17 patterns, more than 16"):
        SplitSequence([r"\d"] * 17)


def test_what_a_sequence_takes_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = [r"\d", "[a-z]+"]
    SplitSequence(patterns)  # and their own tables are remembered
    monkeypatch.setattr(pattern_budget, "MAX_STEPS", 20)
    with pytest.raises(UnsupportedPatternError, match="more than 20 steps"):
        SplitSequence(patterns)
