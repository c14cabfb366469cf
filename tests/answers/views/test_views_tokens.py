"""Tokens as they are shown: ids, spans and counts are those of the library's own doors."""

from __future__ import annotations

import pytest

import streamtok
from streamtok.answers.views.tokens import show_tokens
from streamtok.answers.views.visible import visible, width

TEXT = "Hello 東京 <b>&\n\tétat 🎉 <|endoftext|> e\u0301\u200b\x1b[31m\x85"


def test_numbers_are_those_of_encode(enc):
    shown = show_tokens(enc, TEXT)
    assert shown.ids == enc.encode(TEXT, disallowed_special=())
    assert shown.n_tokens == enc.count(TEXT, disallowed_special=())
    assert (shown.n_bytes, shown.n_characters) == (len(TEXT.encode()), len(TEXT))
    assert shown.tokens_per_character == shown.n_tokens / len(TEXT)
    data = TEXT.encode()
    for one in shown.tokens:
        assert data[one.start : one.stop] == one.token.bytes
        assert one.token.bytes == enc.decode_single_token_bytes(one.token.id)
        assert one.token.rank == one.token.id  # a rank table
        touched = TEXT[one.first_character : one.last_character].encode()
        assert one.token.bytes in touched
        assert len(touched.decode()) == one.last_character - one.first_character


def test_special_tokens(enc):
    name = min(enc.special_tokens_set)
    text = f"a{name}b"
    [special] = [one.token for one in show_tokens(enc, text, allowed_special="all").tokens
                 if one.token.is_special]  # fmt: skip
    assert (special.id, special.rank) == (enc.encode_single_token(name), None)
    assert not any(one.token.is_special for one in show_tokens(enc, text).tokens)
    with pytest.raises(ValueError, match="disallowed special token"):
        show_tokens(enc, text, disallowed_special="all")


def test_bytes_that_are_not_utf8():
    enc = streamtok.get_encoding("cl100k_base")
    with pytest.raises(UnicodeDecodeError):
        show_tokens(enc, b"a\xff")
    shown = show_tokens(enc, b"a\xffb", errors="surrogateescape")
    assert shown.ids == enc.encode(b"a\xffb", errors="surrogateescape")
    assert (shown.n_bytes, shown.n_characters) == (3, 3)
    assert "<FF>" in str(shown)
    replaced = show_tokens(enc, b"a\xffb", errors="replace")
    assert (replaced.n_bytes, replaced.n_characters) == (3, 3)
    assert [one.stop for one in replaced.tokens][-1] == 3


def test_only_printable_characters_are_shown():
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    for at in range(0, len(every), 1 << 16):
        shown = visible(every[at : at + (1 << 16)])
        assert shown.isprintable()
        assert " " not in shown
    assert visible(bytes(range(256))).isprintable()
    assert visible(b" \xe6\x9d") == "·<E6><9D>"
    assert visible("\r\n\t \x00\x1b\x7f\x9b\u202e\ud800") == "␍⏎⇥·␀␛␡<U+009B><U+202E><U+D800>"
    assert visible("❤\ufe0f\u3164\u2800") == "❤<U+FE0F><U+3164><U+2800>"
    assert visible("\ufe0fa") == "<U+FE0F>a"
    assert visible("\u0301a") == "◌\u0301a"  # does not join the token before


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3), ("東京", 4), ("e\u0301", 1), ("🎉", 2), ("한", 2), ("\u1112\u1161\u11ab", 2),
        ("ｱ", 1), ("हिन्दी", 3), ("·⏎⇥", 3), ("◌\u0301", 1), ("", 0),
    ],
)  # fmt: skip
def test_widths(text, columns):
    assert width(text) == columns
