"""The engine for flagged added tokens and normalizers: `tokenizers` is right, at every cut."""

from __future__ import annotations

import random
import unicodedata

import pytest

import streamtok
from streamtok.engines.changing import ChangingEngine
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.errors import PendingLimitExceeded, StreamInUseError
from streamtok.normalizers import Form, Normalizer, Prepend, Replace
from streamtok.normalizers.char_sets import ranges_of

from ..encodings import SINGLES, make_encoding


def encoding(rules: TextRules, pattern: str = r"[\s\S]+", **special: int) -> streamtok.Encoding:
    ranks = SINGLES | {b"ab": 256, b"aa": 257, b" a": 258}
    return make_encoding(pattern, ranks, special, rules=rules)


def nfc(**special: int) -> streamtok.Encoding:
    rules = TextRules((("<t>", 300),), normalizer=Normalizer([Form("NFC")]))
    return encoding(rules, r"[\s\S]", **special)


def _fed(stream, text, step):
    for i in range(0, len(text), step):
        stream.encode(text[i : i + step])
    stream.flush()


def test_refused_tokens_have_their_offset_in_the_text():
    enc = nfc(**{"<s>": 301})
    text = "e\u0301" * 30 + "<t>e\u0301<s>"
    with pytest.raises(ValueError, match="'<s>' at byte 96"):
        enc.encode(text)
    data = text.encode()
    for cut in range(len(data)):
        stream = enc.stream_encoder()
        stream.encode(data[:cut])
        before = stream.getstate()
        with pytest.raises(ValueError, match="'<s>' at byte 96"):
            stream.encode(data[cut:])
        assert stream.getstate() == before
    assert enc.encode("<s>", disallowed_special=()) == [*b"<s>"]
    assert enc.encode("<s><t>", disallowed_special=()) == [*b"<s>", 300]


def test_refused_tokens_in_normalized_text():
    rules = TextRules(
        normalizer=Normalizer([Replace("y", "zzz"), Replace("x", "<")]),
        token_flags=(("xs>", TokenFlags(normalized=True)),),
    )
    enc = encoding(rules, **{"xs>": 301})
    assert enc.encode("y<s>xs>", allowed_special="all") == [*b"zzz", 301, 301]
    for text, offset in (("ybx<s>s>", 3), ("yb xs>", 3), ("y" * 9 + "<s>", 9)):
        for step in (1, 2, 99):
            stream = enc.stream_encoder()
            with pytest.raises(ValueError, match=f"at byte {offset}"):
                _fed(stream, text, step)


def test_limits_are_those_of_the_text():
    stream = nfc().stream_encoder(max_pending=4)
    stream.encode("yxe\u0301")
    assert stream.pending == 4  # the core waits for what follows the "x"
    before = stream.getstate()
    with pytest.raises(PendingLimitExceeded) as raised:
        stream.encode("\u0301")
    assert (raised.value.offset, raised.value.pending, raised.value.limit) == (1, 6, 4)
    assert stream.getstate() == before
    assert stream.encode("x") == [120]
    assert (stream.pending, stream.bytes_in) == (4, 6)
    rules = TextRules((("T", 300),), token_flags=(("T", TokenFlags(lstrip=True)),))
    stream = encoding(rules, r"[\s\S]").stream_encoder()
    stream.encode("a" + " " * 50)
    assert stream.pending == 51
    assert stream.copy().encode("T") == [97, 300]
    assert stream.encode("a")[:50] == [97] + [32] * 49
    stream = encoding(TextRules(normalizer=Normalizer([Replace("a", "bbbb")]))).stream_encoder()
    assert stream.encode("aa", final=True) == [98] * 8


def test_a_call_during_a_call_is_refused(monkeypatch):
    """While the steps are asked for a character."""
    rules = TextRules(normalizer=Normalizer([Replace("\u05d0", "a")]))
    apply = Replace.apply
    raised = []

    def apply_and_call(self, text, where):
        with pytest.raises(StreamInUseError):
            stream.encode("b")
        raised.append(1)
        return apply(self, text, where)

    monkeypatch.setattr(Replace, "apply", apply_and_call)
    stream = encoding(rules, r"[\s\S]").stream_encoder()
    ids = stream.encode("x\u05d0")
    assert raised
    monkeypatch.undo()
    assert ids + stream.flush() == [120, 97]


def test_which_rules_need_the_engine():
    def is_changing(*texts, **rules):
        added = tuple((text, 300 + i) for i, text in enumerate(texts))
        engine = encoding(TextRules(added, **rules)).definition.engine
        return isinstance(engine, ChangingEngine)

    normalized = (("ab", TokenFlags(normalized=True)),)
    assert not is_changing("ab")
    assert not is_changing("ab", normalizer=Normalizer())
    assert not is_changing("ab", "cd", token_flags=normalized)
    assert is_changing("ab", "bc", token_flags=normalized)
    assert is_changing("ab", token_flags=(("ab", TokenFlags(rstrip=True)),))
    assert is_changing("ab", second_normalizer=Normalizer([Prepend("x")]))
    with pytest.raises(ValueError, match="'a' is empty once it is normalized"):
        is_changing(
            "a",
            normalizer=Normalizer([Replace("a", "")]),
            token_flags=(("a", TokenFlags(normalized=True)),),
        )
    with pytest.raises(ValueError, match="9 steps of the normalizer look at neighbouring"):
        is_changing(normalizer=Normalizer([Replace("ab", "b")] * 9))


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("size", [6, 50, 70_000])
def test_texts_of_all_kinds_of_characters(form, size):
    """The core gets all of the text at once, or in two chunks."""
    rng = random.Random(str((form, size)))
    enc = encoding(TextRules(normalizer=Normalizer([Form(form)])), r"[\s\S]")
    sets = [
        [chr(x) for low, high in ranges_of(f"{form}_{name}") for x in range(low, high + 1)]
        for name in ("joins", "opens", "changes")
    ]
    plain = [*"ab <>é", "日本", "가", "क्", "❤"]
    for weight in (0, 1, 30):
        for _ in range(20 if size < 100 else 1):
            length = rng.randint(size, 40 * size) if size < 100 else size
            chosen = [plain, *sets]
            rows = rng.choices(chosen, [30, *[weight] * 3], k=length)
            text = "".join(map(rng.choice, rows))
            expected = list(unicodedata.normalize(form, text).encode())
            assert enc.encode(text, allowed_special=set(), disallowed_special=()) == expected
            assert enc.count(text.encode(), disallowed_special=()) == len(expected)
            stream = enc.stream_encoder(allowed_special=set(), disallowed_special=())
            cut = rng.randint(0, len(text))
            assert stream.encode(text[:cut]) + stream.encode(text[cut:], final=True) == expected
            escaped = text.encode() + b"\xff" + text.encode()
            kept = {"errors": "surrogateescape", "disallowed_special": ()}
            assert enc.encode(escaped, **kept) == [*expected, 0xFF, *expected]


def test_the_first_space_of_decoded_text():
    enc = encoding(TextRules(normalizer=Normalizer([Prepend(" ")]), drops_first_space=True))
    assert enc.encode("a b") == [258, 32, 98]
    assert enc.decode(enc.encode("a b")) == "a b"
    decoder = enc.stream_decoder()
    assert decoder.decode(enc.encode("a b")) + decoder.flush() == "a b"
