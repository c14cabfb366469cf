"""Text that is changed before the pattern cuts it: random steps and tokens, cut anywhere."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import streamtok
from streamtok.engines import texts
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.errors import StateError
from streamtok.normalizers import Form, Normalizer

from ..encodings import make_encoding
from ..normalizers.random_steps import STEPS, random_text

LETTERS = "ab e▁\u0301\n<>é "


def random_rules(rng: random.Random) -> tuple[TextRules, list[str]]:
    """Steps, and tokens with flags."""
    while True:
        try:
            normalizers = [
                Normalizer(rng.choice(STEPS)(rng) for _ in range(n))
                for n in (rng.choice([0, 1, 1, 2, 3]), rng.choice([0, 0, 1, 2]))
            ]
            tokens = {
                "".join(rng.choices(LETTERS, k=rng.randint(1, 4))) for _ in range(rng.randint(0, 5))
            }
            flags = {text: TokenFlags(*(rng.random() < 0.3 for _ in range(4))) for text in tokens}
            if any(not normalizers[0].normalize(x, False) for x in tokens if flags[x].normalized):
                continue
            rules = TextRules(
                added_tokens=tuple((text, 300 + i) for i, text in enumerate(sorted(tokens))),
                normalizer=normalizers[0],
                token_flags=tuple(flags.items()),
                second_normalizer=normalizers[1],
            )
        except ValueError:
            continue  # it would make texts too long
        return rules, sorted(tokens)


def cases(seed: int, count: int) -> Iterator[tuple[streamtok.Encoding, str]]:
    rng = random.Random(seed)
    for _ in range(count):
        rules, tokens = random_rules(rng)
        enc = make_encoding(rules=rules)
        for _ in range(4):
            parts = [random_text(rng)[: rng.choice([3, 10, 40])] for _ in range(rng.randint(0, 4))]
            parts += rng.choices([*tokens, " ", "  "], k=rng.randint(0, 4))
            rng.shuffle(parts)
            yield enc, "".join(parts)


def cut(rng: random.Random, data: bytes) -> list[bytes]:
    if rng.random() < 0.3:
        return [bytes([byte]) for byte in data]
    places = sorted(rng.choices(range(len(data) + 1), k=rng.randint(1, 5)))
    return [
        data[start:stop] for start, stop in zip([0, *places], [*places, len(data)], strict=True)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_ids_are_those_of_the_whole_text(seed: int) -> None:
    rng = random.Random(seed)
    for enc, text in cases(seed, 30):
        wanted = enc.encode(text)
        assert enc.count(text) == len(wanted)
        stream = enc.stream_encoder()
        ids: list[int] = []
        for chunk in cut(rng, text.encode()):
            ids += stream.encode(chunk)
            door = rng.random()
            if door < 0.1:
                stream = stream.copy()
            elif door < 0.2:
                saved = stream.getstate()
                stream = enc.stream_encoder()
                stream.setstate(saved)
            assert 0 <= stream.pending <= stream.bytes_in
        assert ids + stream.flush() == wanted
        assert (stream.pending, stream.bytes_in) == (0, 0)


@pytest.mark.parametrize("seed", range(2))
def test_threads_give_the_ids_of_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are cut only where what is beside the cut stays, and nothing reaches over it."""
    for name, value in (("LARGE", 9), ("PART", 5), ("PER_THREAD", 3)):
        monkeypatch.setattr(texts, name, value)
    monkeypatch.setattr(texts, "usable_cores", lambda: 3)
    for enc, text in cases(seed + 90, 60):
        text += "a<b" * 3 + text
        wanted = enc.encode(text)
        for data in (text, text.encode(), bytearray(text.encode())):
            assert enc.encode_to_numpy(data, num_threads=3).tolist() == wanted
            assert enc.count(data, num_threads=3) == len(wanted)
        assert enc.encode_batch([text, "", text], num_threads=3)[::2] == [wanted, wanted]


@pytest.mark.parametrize("errors", ["replace", "surrogateescape"])
def test_bytes_that_are_not_utf_8(errors: Any) -> None:
    rng = random.Random(errors)
    for enc, text in cases(21, 25):
        data = text.encode()
        at = rng.randint(0, len(data))
        data = data[:at] + rng.choice([b"\xff", b"\xe3\x81", b"\x80"]) + data[at:]
        wanted = enc.encode(data, errors=errors)
        stream = enc.stream_encoder(errors=errors)
        ids = [id for chunk in cut(rng, data) for id in stream.encode(chunk)]
        assert ids + stream.flush() == wanted


@pytest.mark.parametrize("seed", range(2))
def test_spans_of_streams_are_those_of_whole_texts(seed: int) -> None:
    rng = random.Random(seed)
    for enc, text in cases(seed + 50, 30):
        ids, spans = enc.encode_with_offsets(text, unit="byte")
        found = spans.tolist()
        assert ids.tolist() == enc.encode(text)
        assert all(0 <= start <= end <= len(text.encode()) for start, end in found)
        stream = enc.stream_encoder()
        got: list[int] = []
        places: list[list[int]] = []
        data = text.encode()
        chunks = cut(rng, data)
        for number, chunk in enumerate([*chunks, b""]):
            more, where = stream.encode_with_offsets(
                chunk, final=number == len(chunks), unit="byte"
            )
            got += more.tolist()
            places += where.tolist()
        assert (got, places) == (ids.tolist(), found)


def test_damaged_states_are_refused() -> None:
    rng = random.Random(9)
    n_refused = 0
    for enc, text in cases(9, 30):
        stream = enc.stream_encoder()
        stream.encode(text.encode()[: len(text) // 2])
        saved = stream.getstate()
        for _ in range(10):
            at = rng.randrange(len(saved))
            damaged = saved[:at] + bytes([rng.randrange(256)]) + saved[at + 1 :]
            other = enc.stream_encoder()
            try:
                other.setstate(damaged)
            except StateError:
                n_refused += 1
                continue
            try:
                other.encode(text.encode())
                other.flush()
            except UnicodeDecodeError:
                pass  # it may say that a character has begun
    assert n_refused > 20


def test_a_refused_token_is_said_with_its_offset() -> None:
    rules = TextRules(
        normalizer=Normalizer([]), token_flags=(("<x>", TokenFlags(False, True, True)),)
    )
    enc = make_encoding(special={"<x>": 256}, rules=rules)
    assert enc.encode("a <x> b", allowed_special="all") == [97, 256, 98]
    stream = enc.stream_encoder()
    ids = stream.encode("ab<")
    with pytest.raises(ValueError, match=r"<x>"):
        stream.encode("x>")
    assert ids + stream.encode("y", final=True) == [*b"ab<y"]


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
