"""Text that is changed before the pattern cuts it: all calls alike, limits, refusals.

Which tokens are found, and what of a normalizer, is compared with `tokenizers` in
`tests/formats/test_random_tokenizers.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

import streamtok
from streamtok.engines.changing import ChangingEngine
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.errors import PendingLimitExceeded, StreamInUseError
from streamtok.normalizers import Form, MetaspaceText, Normalizer, Prepend, Replace

from ..encodings import SINGLES, make_encoding
from ..long.calls import rounds


@pytest.mark.parametrize("seed", range(20, 30))
def test_every_call_has_the_ids_of_the_whole_text(seed: int) -> None:
    """Streams, threads, spans, bytes that are not UTF-8; the streams' machine tries more."""
    assert rounds.one_round(seed, "rewriting", 3000)["answers"] > 20


def test_the_span_of_a_token_that_is_found_as_another_text() -> None:
    """The token `e` with an accent is found where the text has the one character that NFC makes."""
    rules = TextRules(
        added_tokens=(("e\u0301", 300),),
        normalizer=Normalizer([Form("NFC")]),
        token_flags=(("e\u0301", TokenFlags(normalized=True)),),
    )
    ids, spans = make_encoding(rules=rules).encode_with_offsets("\u00e9a", unit="byte")
    assert ids.tolist() == [300, 97]
    assert spans.tolist() == [[0, 2], [2, 3]]


# Refusals and limits


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


def test_the_first_space_of_decoded_text():
    enc = encoding(TextRules(normalizer=Normalizer([Prepend(" ")]), drops_first_space=True))
    assert enc.encode("a b") == [258, 32, 98]
    assert enc.decode(enc.encode("a b")) == "a b"
    decoder = enc.stream_decoder()
    assert decoder.decode(enc.encode("a b")) + decoder.flush() == "a b"


# What waits


@pytest.mark.parametrize("form", ["NFC", "NFKD"])
def test_what_waits_is_read_once(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a run of marks is, a chunk costs what it has, not all that waits."""
    read = 0
    apply = Form.apply

    def counted_apply(step: Form, text: str, where: int) -> str:
        nonlocal read
        read += len(text)
        return apply(step, text, where)

    enc = make_encoding(rules=TextRules(normalizer=Normalizer([Form(form)])))
    text = "e" + "\u0301\u0316" * 10_000
    monkeypatch.setattr(Form, "apply", counted_apply)
    stream, ids = enc.stream_encoder(), []
    for start in range(0, len(text), 50):
        ids += stream.encode(text[start : start + 50])
        if start % 2000 == 0:
            stream.setstate(stream.getstate())
    assert ids + stream.flush() == enc.encode(text)
    assert read < 30 * len(text)


def test_what_waits_for_a_second_normalizer_counts_once():
    """Also where bytes are repaired."""
    enc = make_encoding(
        r"x+|[^x]+", rules=TextRules(second_normalizer=Normalizer([Replace("xy", "z")]))
    )
    stream = enc.stream_encoder(errors="replace")
    for chunk, pending in (
        (b"ab\xffx", 6), (b"x", 2), (b"\xffx", 4), (b"y\xff\xe2x", 12), (b"x", 2),
    ):  # fmt: skip
        stream.encode(chunk)
        assert stream.pending == pending
        state = stream.getstate()
        stream.setstate(state)
        assert stream.getstate() == state


@pytest.mark.parametrize("second", [None, Normalizer([MetaspaceText("\u2581", "always")])])
@pytest.mark.parametrize("head", ["e" + "\u0301" * 500, "k" + "\xad" * 500])
def test_only_what_must_wait_counts_for_max_pending(head: str, second: Normalizer | None) -> None:
    """A long element is not walked with each chunk, but before a chunk is refused."""
    normalizer = Normalizer([Replace("\xad", ""), Form("NFC")])
    tokens = (("<x>", 300),)
    rules = TextRules(
        tokens, normalizer, token_flags=(("<x>", TokenFlags(normalized=True)),),
        second_normalizer=second,
    )  # fmt: skip
    enc = make_encoding(r"[\s\S]", rules=rules)
    text = head + "abcd" * 200
    stream = enc.stream_encoder(max_pending=len(head.encode()) + 8)
    ids = [id for at in range(0, len(text), 4) for id in stream.encode(text[at : at + 4])]
    assert stream.pending < 8
    assert ids + stream.flush() == enc.encode(text)
    marks = "\u0301\u0301"
    while stream.pending + len(marks.encode()) <= stream.max_pending:
        stream.encode(marks)
    with pytest.raises(PendingLimitExceeded, match="bytes from offset 0 of the stream would"):
        stream.encode(marks)
    assert stream.pending <= stream.max_pending
