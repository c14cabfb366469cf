"""Patterns without tables, which the `regex` package matches: it may go back for ever."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import streamtok
from streamtok import formats
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.errors import PatternError
from streamtok.reference import bpe as reference
from streamtok.views import merges

from ..reference import tokenizer_json

PATTERN = r"(?<!q)(?:.*?,){12}P"
HOSTILE = "," * 60  # two to the power of 60 steps, about
BYTES = {bytes([byte]): byte for byte in range(256)}


def made(pattern: str = PATTERN, **rules: object) -> streamtok.Encoding:
    return streamtok.Encoding(
        "made", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={"<s>": 256},
        rules=TextRules(**rules),
    )  # fmt: skip


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "MATCH_SECONDS", 0.05)


WAYS = {
    "encode": lambda enc: enc.encode(HOSTILE),
    "bytes": lambda enc: enc.encode(HOSTILE.encode(), errors="replace"),
    "ordinary": lambda enc: enc.encode_ordinary(HOSTILE),
    "numpy": lambda enc: enc.encode_to_numpy(HOSTILE),
    "batch": lambda enc: enc.encode_batch([HOSTILE, "a"]),
    "count": lambda enc: enc.count(HOSTILE),
    "fits": lambda enc: enc.fits(HOSTILE, 3),
    "truncate": lambda enc: enc.truncate(HOSTILE, 3),
    "offsets": lambda enc: enc.encode_with_offsets(HOSTILE),
    "unstable": lambda enc: enc.encode_with_unstable(HOSTILE),
    "views": lambda enc: merges.pretokens(enc, HOSTILE),
}


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("way", WAYS)
def test_every_call_ends_and_names_the_pattern(way: str) -> None:
    with pytest.raises(
        PatternError, match=r"'\(\?<!q\)\(\?:\.\*\?,\)\{12\}P' takes more than 0\.0"
    ):
        WAYS[way](made())


@pytest.mark.usefixtures("short")
def test_the_reference_ends_as_well() -> None:
    with pytest.raises(PatternError, match="takes more than"):
        reference.split_in_turn([PATTERN], HOSTILE)
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated"}
    with pytest.raises(PatternError, match="takes more than"):
        tokenizer_json.pre_tokenize(split, HOSTILE)


@pytest.mark.usefixtures("short")
def test_the_time_is_that_of_a_call_not_of_each_stretch() -> None:
    """Special and added tokens cut the text: each of the pieces has little to do."""
    piece = "," * 18  # some milliseconds
    begun = time.thread_time()
    made().encode(piece)
    assert time.thread_time() - begun < 0.05
    with pytest.raises(PatternError, match="takes more than"):
        made().encode(f"{piece}<s>" * 200, allowed_special="all")
    added = made(added_tokens=(("+", 300),), token_flags=(("+", TokenFlags(lstrip=True)),))
    with pytest.raises(PatternError, match="takes more than"):
        added.encode(f"{piece} +" * 200)


def test_no_time_is_left_after_a_match_that_took_more() -> None:
    """`regex` looks at the clock now and then, so a match may end after its time."""
    pattern = reference.compile_pattern(PATTERN)
    left = reference.MatchTime(1)
    left._left = -1e-3
    with pytest.raises(PatternError, match="takes more than"):
        left.spans(pattern, "," * 18)


@pytest.mark.usefixtures("short")
def test_a_file_of_minbpe(tmp_path: Path) -> None:
    path = tmp_path / "hostile.model"
    path.write_text(f"minbpe v1\n{PATTERN}\n0\n97 98\n")
    loaded = formats.load(path)
    with pytest.raises(PatternError, match="takes more than"):
        loaded.encode(HOSTILE)
    assert loaded.encode(",") == []  # the pattern leaves it out; the encoding is as it was


def test_the_time_of_other_threads_does_not_count() -> None:
    """`regex` takes the time of the process: the match is tried again with more."""

    class Slow:
        pattern = "a"
        timeouts: list[float] = []  # noqa: RUF012

        def finditer(self, text: str, timeout: float) -> list[object]:
            self.timeouts.append(timeout)
            if len(self.timeouts) < 4:
                raise TimeoutError
            return []

    assert reference.MatchTime(0).spans(Slow(), "text") == []
    assert Slow.timeouts == [2.0, 4.0, 8.0, 16.0]


def test_the_time_grows_with_the_text() -> None:
    text = "Hello, it's 12345 words\n" * 4_000
    pattern = r"(?<!q)\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+|[^\s\p{L}\p{N}]+"
    begun = time.thread_time()
    spans = reference.MatchTime(len(text)).spans(reference.compile_pattern(pattern), text)
    taken = time.thread_time() - begun
    assert "".join(text[start:end] for start, end in spans) == text
    assert taken < len(text) * reference.SECONDS_PER_CHARACTER / 4  # without the two seconds
