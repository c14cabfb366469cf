"""Chunks that the core changes, in streams whose text a normalizer may change."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok._core.encode import ChangedNote
from streamtok.engines import rewriting, stretches
from streamtok.engines.rules import TextRules
from streamtok.normalizers import (
    Form,
    JoinedSpaces,
    LongestMap,
    Lowercase,
    MetaspaceText,
    Normalizer,
    Precompiled,
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
        rules=TextRules(normalizer="NFC"),
    )


ENC = encoding()


SLOW = encoding()


def slow_stream(slow: streamtok.Encoding, **settings: Any) -> streamtok.StreamEncoder:
    """A stream whose chunks all go through the steps of the normalizer. slow: has no others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewriting, "compiled", lambda *normalizers: None)
        return slow.stream_encoder(**settings)


def is_inside(stream: streamtok.StreamEncoder) -> bool:
    note: ChangedNote | None = stream._tail.note
    return note is not None and note.place is None


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
    moved = 0
    for _ in range(20):
        text = "".join(rng.choices(PIECES, k=rng.randrange(40)))
        wanted = ENC.encode(text, allowed_special="all")
        stream = ENC.stream_encoder(allowed_special="all")
        other = slow_stream(SLOW, allowed_special="all")
        got: list[int] = []
        same: list[int] = []
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
            same += other.encode(chunk)
            moved += is_inside(stream)
            assert not is_inside(other)
            assert (stream.bytes_in, stream.tokens_out) == (other.bytes_in, len(got))
            assert stream.pending <= stream.bytes_in
        assert got + stream.flush() == wanted
        assert same + other.flush() == wanted
    assert moved > 5


# Some become a space together.
CHARSMAP = write_charsmap(
    {"e\u0301": "é", "ｆ": "f", "\n": " ", "ab": " x", "nd": "y ", "om": "", "\u3000": " "}
)
MARKS = Normalizer([MetaspaceText("\u2581", "always")])
SPACES = ReplaceRuns(" {2,}", " ")
SEVERAL = {
    "map, spaces": (LongestMap(CHARSMAP, ("th",), False), JoinedSpaces(True)),
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
        LongestMap(CHARSMAP, (), True), JoinedSpaces(False), UnknownRuns("abehnt0 \u2581", "?")
    ),
}  # fmt: skip


def encoding_of_steps(name: str) -> streamtok.Encoding:
    first = Normalizer(SEVERAL[name])
    rules = TextRules(normalizer=first, second_normalizer=None if "spaces" in name else MARKS)
    return make_encoding(r"[^ ]+| +", special=TOKENS, rules=rules)


def text_of_spaces(rng: random.Random) -> str:
    pieces = [*PIECES, " ", "\u3000", " \u0301", "ab", "th", "\u2581", " om om", " nd ab "]
    return "".join(rng.choices(pieces, k=rng.randrange(40)))


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("seed", range(10))
def test_steps_that_look_at_others_are_done_in_the_core(name: str, seed: int) -> None:
    rng = random.Random(seed)
    moved = 0
    enc, slow = encoding_of_steps(name), encoding_of_steps(name)
    for _ in range(20):
        text = text_of_spaces(rng)
        other = slow_stream(slow, allowed_special="all")
        stream = enc.stream_encoder(allowed_special="all")
        got: list[int] = []
        same: list[int] = []
        for chunk in chunks_of(rng, text):
            got += stream.encode(chunk)
            same += other.encode(chunk)
            moved += is_inside(stream)
            assert not is_inside(other)
            assert other.bytes_in >= stream.pending >= 0
        got += stream.flush()
        assert got == same + other.flush() == enc.encode(text, allowed_special="all")
    assert moved > 5


@pytest.mark.parametrize("form", ["NFC", "NFKD"])
def test_what_waits_is_read_once(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a run of marks is, a chunk costs what it has, not all that waits."""
    read = 0
    change, size = Form.change, stretches.utf8_size

    def counted_change(step: Form, context: int, text: str, *more: Any) -> Any:
        nonlocal read
        read += len(text)
        return change(step, context, text, *more)

    def counted_size(text: str) -> int:
        nonlocal read
        read += len(text)
        return size(text)

    enc = make_encoding(rules=TextRules(normalizer=Normalizer([Form(form)])))
    text = "e" + "\u0301\u0316" * 10_000
    monkeypatch.setattr(Form, "change", counted_change)
    monkeypatch.setattr(stretches, "utf8_size", counted_size)
    stream, ids = enc.stream_encoder(), []
    for start in range(0, len(text), 50):
        ids += stream.encode(text[start : start + 50])
        if start % 2000 == 0:
            stream.setstate(stream.getstate())
    assert ids + stream.flush() == enc.encode(text)
    assert read < 30 * len(text)  # it was 200 times that


def reloaded(stream: streamtok.StreamEncoder) -> streamtok.StreamEncoder:
    saved = stream.getstate()
    twin = ENC.stream_encoder(allowed_special="all")
    twin.setstate(saved)
    assert twin.getstate() == saved
    assert (twin.pending, twin.bytes_in, twin.tokens_out) == (
        stream.pending, stream.bytes_in, stream.tokens_out,
    )  # fmt: skip
    return twin


def outcome(stream: streamtok.StreamEncoder, chunk: str | bytes) -> Any:
    try:
        return stream.encode(chunk)
    except ValueError as error:
        return type(error), str(error), getattr(error, "start", None)


@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
@pytest.mark.parametrize("seed", range(20))
def test_errors_are_those_of_the_slow_steps(seed: int, errors: str) -> None:
    """Refused tokens and bytes that are no UTF-8: the same message, and nothing has happened."""
    rng = random.Random(seed)
    stream = ENC.stream_encoder(errors=errors)
    other = slow_stream(SLOW, errors=errors)
    # Some begin like characters beyond the last one.
    bad: list[str | bytes] = [b"\xff", b"\xf7\xbf\xbf\xbf words", b"\xff" * 4]
    bad += [b"words and \xe2\x28 words"]
    if errors != "strict":  # there, every chunk behind it would be refused
        bad.append(b"the \xc3")
    failed = 0
    got: list[int] = []
    same: list[int] = []
    for _ in range(150):
        text = "".join(rng.choices(PIECES[:-6] + ["words and words "] * 20, k=8))
        chunk: str | bytes = rng.choice(bad) if rng.random() < 0.1 else text
        if isinstance(chunk, str) and rng.random() < 0.5:
            chunk = chunk.encode()
        before = stream.getstate()
        found, wanted = outcome(stream, chunk), outcome(other, chunk)
        if isinstance(wanted, tuple):
            failed += 1
            assert found == wanted
            assert stream.getstate() == before
        else:
            got += found
            same += wanted
        assert stream.bytes_in == other.bytes_in
    assert got + stream.flush() == same + other.flush()
    assert failed > 3


def test_what_waits_for_a_second_normalizer_counts_once():
    """Also where bytes are repaired: these chunks go through the steps."""
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
