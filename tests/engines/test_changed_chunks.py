"""Chunks that the core changes, in streams whose text a normalizer may change."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.errors import PendingLimitExceeded
from streamtok.normalizers import (
    Form,
    JoinedSpaces,
    LongestMap,
    Lowercase,
    MetaspaceText,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
    ReplaceRuns,
    Strip,
    StripAccents,
    UnknownRuns,
)
from streamtok.normalizers.charsmap import write_charsmap

from ..encodings import SINGLES, make_encoding

TOKENS = {"<|end|>": 300, "e<s>": 301, "xé": 302}
MERGED = {b"ab": 256, b"th": 257, b"the": 258, b" the": 259, "é".encode(): 260}
PIECES = [
    "the word and the other ", "e", "\u0301", "é", "\u0316", "가", "\u11a8", "ｆ", "\u2126", "\n\n",
    "abab" * 20, "日本語", "<", "|", "end", "|>", "<|en", "<|end|>", "e<", "s>", "x", "नि",
    "\u093c", "a" * 70, "  ", "\U0001f600",
]  # fmt: skip


def encoding(**tokens: int) -> streamtok.Encoding:
    return make_encoding(
        r" ?\p{L}+|\s+|[^\s\p{L}]+",
        SINGLES | MERGED,
        tokens or TOKENS,
        rules=TextRules(normalizer=Normalizer([Form("NFC")])),
    )


ENC = encoding()


def chunks_of(rng: random.Random, text: str) -> list[str | bytes]:
    """Cut anywhere, also inside characters, and between bytes and str only between these."""
    found: list[str | bytes] = []
    at = 0
    while at < len(text):
        size = rng.choice([1, 2, 3, 10, 50, 100])
        piece = text[at : at + size]
        at += size
        if rng.random() < 0.5:
            found.append(piece)
            continue
        data = piece.encode()
        cut = rng.randint(0, len(data))
        found += [data[:cut], data[cut:]]
    return found


@pytest.mark.parametrize("seed", range(20))
def test_ids_are_those_of_the_whole_text_at_every_cut(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        text = "".join(rng.choices(PIECES, k=rng.randrange(40)))
        wanted = ENC.encode(text, allowed_special="all")
        stream = ENC.stream_encoder(allowed_special="all")
        got: list[int] = []
        for chunk in chunks_of(rng, text):
            door = rng.randrange(4)
            if door == 0:
                got += stream.encode(chunk)
            elif door == 1:
                got += stream.encode_to_numpy(chunk).tolist()
            elif door == 2:
                out = np.zeros(len(chunk) * 4 + stream.pending + 8, np.uint32)
                got += out[: stream.encode_into(chunk, out)].tolist()
            else:
                stream = stream.copy() if rng.random() < 0.5 else reloaded(stream)
                got += stream.encode(chunk)
            assert stream.tokens_out == len(got)
            assert stream.pending <= stream.bytes_in
        assert got + stream.flush() == wanted


# Some become a space together.
CHARSMAP = write_charsmap(
    {"e\u0301": "é", "ｆ": "f", "\n": " ", "ab": " x", "nd": "y ", "om": "", "\u3000": " "}
)
MARKS = Normalizer([MetaspaceText("\u2581", "always")])
SPACES = ReplaceRuns(" {2,}", " ")
SEVERAL = {
    "map, spaces": (LongestMap(CHARSMAP, ("th",), False), JoinedSpaces(), Prepend(" ", True)),
    "map": (Precompiled(CHARSMAP),),
    "map, runs": (Precompiled(CHARSMAP), SPACES),
    "strip, map, runs": (Strip(True, True), Precompiled(CHARSMAP), SPACES),
    "runs, form, strip": (SPACES, Form("NFC"), Strip(False, True)),
    "strings, runs, map": (
        Replace("ab", "?"), Replace("e\u0301", ""), SPACES, Precompiled(CHARSMAP)
    ),
    "strings, folds, map": (
        Replace("th", "e"), Form("NFKD"), StripAccents(), Lowercase(), Precompiled(CHARSMAP)
    ),
    "map, spaces, unknown": (
        LongestMap(CHARSMAP, (), True), JoinedSpaces(), UnknownRuns("abehnt0 \u2581", "?")
    ),
}  # fmt: skip


def encoding_of_steps(name: str) -> streamtok.Encoding:
    first = Normalizer(SEVERAL[name])
    rules = TextRules(normalizer=first, second_normalizer=None if "spaces" in name else MARKS)
    return make_encoding(r"[^ ]+| +", special=TOKENS, rules=rules)


def text_of_spaces(rng: random.Random) -> str:
    pieces = [*PIECES, " ", "\u3000", " \u0301", "ab", "th", "\u2581", " om om", " nd ab "]
    return "".join(rng.choices(pieces, k=rng.randrange(40)))


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


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("seed", range(10))
def test_steps_that_look_at_others_are_done_in_the_core(name: str, seed: int) -> None:
    rng = random.Random(seed)
    enc = encoding_of_steps(name)
    for _ in range(20):
        text = text_of_spaces(rng)
        stream = enc.stream_encoder(allowed_special="all")
        got: list[int] = []
        for chunk in chunks_of(rng, text):
            got += stream.encode(chunk)
            assert stream.bytes_in >= stream.pending >= 0
        assert got + stream.flush() == enc.encode(text, allowed_special="all")


def reloaded(stream: streamtok.StreamEncoder) -> streamtok.StreamEncoder:
    saved = stream.getstate()
    twin = ENC.stream_encoder(allowed_special="all")
    twin.setstate(saved)
    assert twin.getstate() == saved
    assert (twin.pending, twin.bytes_in, twin.tokens_out) == (
        stream.pending, stream.bytes_in, stream.tokens_out,
    )  # fmt: skip
    return twin


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


@pytest.mark.parametrize("second", [None, MARKS])
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
