"""Patterns without tables, which the `regex` package matches: it may go back for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamtok
from streamtok import formats
from streamtok.answers.views import merges
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.errors import PatternError, UnsupportedPatternError
from streamtok.normalizers import Form, Normalizer
from streamtok.reference import bpe as reference

from ..encodings import make_encoding

PATTERN = r"(?<!q)(?:.*?,){12}P"
HOSTILE = "," * 60  # two to the power of 60 steps, about


def made(**rules: object) -> streamtok.Encoding:
    return make_encoding(PATTERN, special={"<s>": 256}, rules=TextRules(**rules))  # fmt: skip


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "MATCH_SECONDS", 0.05)


WAYS = {
    "encode": lambda enc: enc.encode(HOSTILE),
    "bytes": lambda enc: enc.encode(HOSTILE.encode(), errors="replace"),
    "batch": lambda enc: enc.encode_batch([HOSTILE, "a"]),
    "count": lambda enc: enc.count(HOSTILE),
    "unstable": lambda enc: enc.encode_with_unstable(HOSTILE),
    "views": lambda enc: merges.pretokens(enc, HOSTILE),
    "reference": lambda enc: reference.split_in_turn([PATTERN], HOSTILE),
}


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("way", WAYS)
def test_every_call_ends_and_names_the_pattern(way: str) -> None:
    with pytest.raises(
        PatternError, match=r"'\(\?<!q\)\(\?:\.\*\?,\)\{12\}P' takes more than 0\.0"
    ):
        WAYS[way](made())


@pytest.mark.usefixtures("short")
def test_a_file_of_minbpe(tmp_path: Path) -> None:
    path = tmp_path / "hostile.model"
    path.write_text(f"minbpe v1\n{PATTERN}\n0\n97 98\n")
    loaded = formats.load(path)
    with pytest.raises(PatternError, match="takes more than"):
        loaded.encode(HOSTILE)
    assert loaded.encode(",") == []  # the pattern leaves it out; the encoding is as it was


def test_the_time_grows_with_the_text() -> None:
    text = "Hello, it's 12345 words\n" * 4_000
    pattern = r"(?<!q)\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+|[^\s\p{L}\p{N}]+"
    assert "".join(reference.split(pattern, text)) == text


@pytest.mark.parametrize(
    "rules",
    [
        {"normalizer": Normalizer([Form("NFC")])},
        {"added_tokens": (("+", 300),), "token_flags": (("+", TokenFlags(lstrip=True)),)},
    ],
)
def test_a_text_that_is_changed_first_is_refused_by_name(rules: dict[str, object]) -> None:
    with pytest.raises(UnsupportedPatternError, match=r"look-?behind.*not after a normalizer"):
        made(**rules)
