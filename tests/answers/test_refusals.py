"""Arguments that mean nothing: every answer refuses them at once, before it reads a source."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import streamtok

from ..encodings import make_encoding
from .slowly import with_rules

LOOKS_BEHIND = make_encoding(r"(?<=a)b|.")
ENC = streamtok.get_encoding("cl100k_base")
Call = Callable[..., Any]


def max_tokens(text: Any, budget: Any) -> Any:
    return ENC.encode(text, max_tokens=budget)


def stop(stops: Any) -> Any:
    return ENC.stream_decoder(stop=stops)


def offsets(text: Any, unit: str = "byte") -> Any:
    return ENC.encode_with_offsets(text, unit)  # type: ignore[call-overload]


def refuses(call: Call) -> Call:
    return lambda *args: call(*args, disallowed_special="all")


BELOW = "max_tokens must be at least 0, not -"
REFUSED: list[tuple[Call, tuple[Any, ...], type[Exception], str]] = [
    *((call, ("text", -1), ValueError, BELOW) for call in (ENC.fits, ENC.truncate, max_tokens)),
    *((call, ("a", -(1 << 70)), ValueError, BELOW) for call in (ENC.fits, ENC.truncate)),
    (ENC.fits, ("text", 1.5), TypeError, "max_tokens must be an integer"),
    (ENC.fits, (7, 1), TypeError, "int"),
    (ENC.fits, (b"a\xff", 9), UnicodeDecodeError, "invalid start byte"),
    (refuses(ENC.fits), ("<|endoftext|>", 9), ValueError, "disallowed special token"),
    (ENC.truncate, ("text", 1, "up"), ValueError, 'side must be "right" or "left"'),
    (ENC.truncate, (["te", "xt"], 1, "left"), TypeError, "keeps the end"),
    (ENC.truncate, (["te", b"xt"], 9), TypeError, "these are mixed"),
    (
        with_rules(1, "NFC").truncate,
        ("e\u0301" * 10_000, 9, "left"),
        ValueError,
        "encoding cannot begin within the last 20,000 characters: this encoding",
    ),
    *(
        (call, arguments, streamtok.UnsupportedPatternError, "look-behind '\\(\\?<='")
        for call, arguments in [
            (lambda text: LOOKS_BEHIND.encode(text, max_tokens=9), ("ab",)),
            (LOOKS_BEHIND.fits, ("ab", 9)),
            (LOOKS_BEHIND.truncate, ("ab", 9)),
            (LOOKS_BEHIND.truncate, ("ab", 9, "left")),
            (lambda *how: list(LOOKS_BEHIND.split(*how)), ("ab", 9)),
            (LOOKS_BEHIND.encode_with_offsets, ("ab",)),
        ]
    ),
    (ENC.split, ("text", 0), ValueError, "max_tokens must be at least 1, not 0"),
    (ENC.split, ("text", -3), ValueError, "max_tokens must be at least 1"),
    (ENC.split, ("text", 5, -1), ValueError, "overlap must be at least 0"),
    (ENC.split, ("a", 5, 5), ValueError, "overlap must be less than max_tokens, which is 5, not 5"),
    (ENC.split, ("text", 5, 0, "word"), ValueError, "boundary must be one of"),
    (ENC.split, ("text", 5, 0, 7), TypeError, "boundary must be a str or a compiled"),
    (ENC.split, ("text", 5, 0, re.compile(b"x")), TypeError, "regular expression is one for bytes"),
    (ENC.split, (b"text", 5, 0, re.compile("x")), TypeError, "regular expression is one for str"),
    (ENC.split, (5, 5), TypeError, "text must be str"),
    (offsets, ("a", "line"), ValueError, 'unit must be "byte", "character" or "utf16"'),
    (offsets, ("<|endoftext|>",), ValueError, "disallowed special token"),
    (offsets, (b"\xff",), UnicodeDecodeError, "invalid start byte"),
    *((stop, (stops,), ValueError, "stop") for stops in ("", ["a", ""], "a" * 1_025, [])),
    *((stop, (stops,), TypeError, "stop") for stops in ([b"x"], [3])),
]


@pytest.mark.parametrize(("call", "arguments", "error", "message"), REFUSED)
def test_it_says_so(
    call: Call, arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(*arguments)
