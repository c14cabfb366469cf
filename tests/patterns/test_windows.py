"""Windows against the automaton, on all short texts of what it tells apart.

`said` is the slow reading of the tables, one position at a time, as `windows.py` and
`window_flags.py` describe them; `tests/core/test_fast_paths.py` does the same to the core's tiers.
"""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Iterator

import pytest

from streamtok.patterns.pattern import Pattern
from streamtok.patterns.tables import Windows
from streamtok.patterns.window_flags import ENDS_RUN, HARMLESS, RUN
from streamtok.patterns.windows import CLASS, FOLLOWER, UNDECIDED

from ..core.test_fast_paths import SPLITS

# In each, something ends rows, follows a trigger, or nearly does.
MORE = [
    r"\s*[\r\n]+|\s+(?!\S)|\s+|'(?i:[sdmt]|ll|ve|re)|\w+|[^\w\s]",
    r"a+b|a+(?!c)|a|b|c|[^abc]",
    r"a{3}b|a|b|[^ab]",
    r"(?:aa)+b|a|b|[^ab]",
    r"(?:aa)+b|(?:aaa)+c|a|b|c|[^abc]",
    r"a{1,4}b|c?a+(?!d)|a|[^a]",
    r"b\s+c|\s+(?=c)|\s+|[a-c]|[^a-c\s]",
    r" ?'[st]|'t|\w+|\s|[^\w\s]",
    r"\.'s|\.'|'[st]?|[a-z]+|[^a-z]",
    r"'s'|'s|'[a-z]|[a-z]+|[^a-z']",
    r"x'[st]|[a-z]+|'|[^a-z']",
    r"n\s+bc|n|\s+|[a-z]|[^a-z\s]",  # b does not end a row for sure
    r"n\s{3}b|n|\s+|[a-z]|[^a-z\s]",  # only after some lengths
    r"n\s{4}b|n|\s+|[a-z]|[^a-z\s]",
]


def said(windows: Windows, text: str) -> Iterator[tuple[int, bool]]:
    """(place, whether a pre-token begins there) for all that can be told; none of counted runs."""
    flags = [int(windows.classes[ord(char)]) for char in text]
    numbers = [flag & CLASS for flag in flags]
    after = -1  # the last place that a trigger opens
    pairs = [
        i
        for i in range(len(text) - 1)
        if ord(text[i]) == windows.trigger
        and flags[i + 1] & FOLLOWER
        and not (i and flags[i - 1] & HARMLESS)
    ]
    for i in range(len(text) - 1):
        if i in pairs:
            after = i + windows.reach + 3
        if i < 2 or i <= after:
            continue
        a, b, c, d = numbers[i - 2 : i + 2]
        decision = windows.decisions[windows.lefts[a, b], windows.rights[c, d]]
        if decision != UNDECIDED:
            yield i, bool(decision)
        elif flags[i] & RUN and numbers[i] == numbers[i + 1]:
            end = i
            while end < len(text) and numbers[end] == numbers[i]:
                end += 1
            if end < len(text) and flags[end] & ENDS_RUN:
                yield i, True


def letters_of(windows: Windows, pattern: Pattern | None = None) -> str:
    """A character of each kind that windows tell apart, and of each that the pattern does."""
    found: dict[tuple[int, int], str] = {}
    for char in " \nae'stx1.b" + "".join(map(chr, range(128))):
        kind = pattern.class_of(ord(char)) if pattern else 0
        found.setdefault((int(windows.classes[ord(char)]), kind), char)
    return "".join(found.values())


def check(pattern: Pattern, windows: Windows, text: str) -> int:
    """The number of places that are told; all of them must be right.

    A character that is skipped counts as a pre-token, see `Automaton.closed`.
    """
    assert pattern.closed is not None
    starts = set(itertools.accumulate(map(len, pattern.closed.findall(text)), initial=0))
    count = 0
    for place, begins in said(windows, text):
        assert (place in starts) == begins, (text, place)
        count += 1
    return count


@pytest.mark.parametrize("source", [*SPLITS, *MORE])
def test_all_short_texts(source: str) -> None:
    pattern = Pattern.compile(source)
    windows = pattern.windows
    if windows is None:
        return
    letters = letters_of(windows)
    size = 1
    while size < 8 and len(letters) ** (size + 1) <= 15_000:
        size += 1
    told = sum(
        check(pattern, windows, "".join(text)) for text in itertools.product(letters, repeat=size)
    )
    assert told


@pytest.mark.parametrize("source", [*SPLITS, *MORE])
def test_longer_texts_of_few_letters(source: str) -> None:
    """Rows and triggers, with what comes before and behind them."""
    pattern = Pattern.compile(source)
    windows = pattern.windows
    if windows is None:
        return
    letters = letters_of(windows, pattern)
    rng = random.Random(source)
    for _ in range(1500):
        some = rng.choices(letters, k=rng.choice([1, 2, 3])) + rng.choices(" \n'sab", k=2)
        text = "".join(char * rng.choice([1, 1, 1, 2, 3, 6]) for char in rng.choices(some, k=9))
        check(pattern, windows, text)


def test_what_is_skipped_is_told_by_the_first_character() -> None:
    for source in (r"\w+|[^\w\s]+", r"\d{1,3}|[a-z]+"):
        pattern = Pattern.compile(source)
        closed = pattern.closed
        assert not pattern.is_total
        assert closed is not None
        assert closed.is_total
        assert [pattern.begins[pattern.class_of(ord(c))] for c in "a "] == [True, False]
        assert closed.findall("ab  1!") == [*pattern.findall("ab"), " ", " ", "1", "!"]
    assert Pattern.compile("ab|b").closed is None  # after an a it depends on more
    assert Pattern.compile(r"\s+|\S+").closed.is_total


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_characters_that_are_skipped_in_long_texts(errors: str) -> None:
    """Windows decide there, also of one byte a character; the cache of a model knows them."""
    from streamtok.training.trainer import Trainer

    rng = random.Random(5)
    words = ["low", "lower", "日本", "é", "👍", "!", "a" * 40, "１", "\u2014"]
    blanks = [" ", " ", "  ", "\n", "\u3000", "\xa0", "\u2028 ", ""]
    text = "".join(rng.choice(words) + rng.choice(blanks) for _ in range(6000))
    data = text.encode()
    if errors != "strict":
        data = data.replace("é".encode(), b"\xff\xc3 ")
    trainer = Trainer("bert", errors="replace" if errors == "strict" else errors)
    trainer.update(data, final=True)
    pretokens = trainer.pattern.findall(data.decode("utf-8", errors))
    counts = collections.Counter(p.encode("utf-8", errors) for p in pretokens)
    assert trainer.piece_counts() == dict(counts)
    word_trainer = Trainer("bert")
    word_trainer.update(text, final=True)
    enc = word_trainer.train_wordpiece(60)
    one = {p: enc.encode(p, errors=errors) for p in {p.encode("utf-8", errors) for p in pretokens}}
    expected = [id for p in pretokens for id in one[p.encode("utf-8", errors)]]
    for _ in range(2):  # the cache knows more
        assert enc.encode(data, errors=errors) == expected
        stream = enc.stream_encoder(errors=errors)
        found = []
        for start in range(0, len(data), 999):
            found += stream.encode(data[start : start + 999])
        assert found + stream.flush() == expected
    ids, spans = enc.encode_with_offsets(data, "byte", errors=errors)
    assert ids.tolist() == expected
    assert all(data[a:b].strip(b" \n") for a, b in spans.tolist())


def flagged(windows: Windows, flag: int) -> str:
    return "".join(chr(i) for i in range(128) if windows.classes[i] & flag)


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_what_the_flags_of_well_known_patterns_are(name: str) -> None:
    import streamtok

    windows = streamtok.get_encoding(name).pattern.windows
    assert flagged(windows, RUN) == "\t\x0b\x0c "
    blanks = set("\t\n\x0b\x0c\r ")
    assert set(flagged(windows, ENDS_RUN)) == set(map(chr, range(128))) - blanks
    harmless = set(flagged(windows, HARMLESS))
    assert {" ", "(", "'", "="} <= harmless
    assert not harmless & set("aZ")
    assert ("\n" in harmless) == (name == "o200k_base")  # a contraction is of a word there


def test_without_flags_less_is_told() -> None:
    pattern = Pattern.compile(SPLITS[0])
    cl100k = next(p for p in map(Pattern.compile, SPLITS) if r"\s*[\r\n]" in p.source)
    for text in ("x\n    if x", "say 'twas"):
        bare = cl100k.windows._replace(classes=cl100k.windows.classes & (CLASS | FOLLOWER))
        assert check(cl100k, cl100k.windows, text) > check(cl100k, bare, text)
    assert not flagged(pattern.windows, RUN) or pattern.source != SPLITS[0]
