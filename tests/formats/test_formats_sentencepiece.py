"""SentencePiece models against the sentencepiece library: real, trained, and refused ones."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from streamtok import formats

from ..oracles import assert_same, refuses, texts, write
from ..sentencepiece_models import BASE, SPACE, field, model, processor, trained

DATA = Path(importlib.util.find_spec("mistral_common").origin).parent / "data"


@pytest.mark.parametrize(
    "file",
    [
        "tokenizer.model.v1",
        "mistral_instruct_tokenizer_240323.model.v3",
        "mistral_instruct_tokenizer_241114.model.v7m1",
    ],
)
def test_mistrals_own_models(file):
    data = (DATA / file).read_bytes()
    theirs = processor(data)
    enc = formats.load(DATA / file)
    samples = [*texts(), "[INST] a [/INST]<s> [REF] x[/REF] [REFERENCE_DOC_1][REFERENCE_DOC_12"]
    assert_same(enc, theirs.encode, samples, round_trip=False)
    for text in samples:
        ids = theirs.encode(text)
        if "<" not in text:  # sentencepiece decodes control symbols to nothing
            assert enc.decode(ids) == theirs.decode(ids)
        if "\u2581" not in text:
            assert enc.decode(ids) == text
    assert enc.n_vocab == theirs.vocab_size()
    assert b" the" in enc.token_byte_values()
    assert b"\xe6\x97" not in enc.token_byte_values()
    for number in range(theirs.vocab_size()):
        if (
            not theirs.is_control(number)
            and not theirs.is_unknown(number)
            and not theirs.is_byte(number)
        ):
            piece = theirs.id_to_piece(number).replace("\u2581", " ").encode()
            assert enc.decode_single_token_bytes(number) == piece
            assert enc.encode_single_token(piece) == number
        elif theirs.is_byte(number):
            value = bytes([int(theirs.id_to_piece(number)[3:5], 16)])
            assert enc.decode_single_token_bytes(number) == value


# Streams


@pytest.fixture(scope="module")
def enc():
    return formats.load(DATA / "mistral_instruct_tokenizer_240323.model.v3")


def test_the_space_before_the_text(enc):
    """Streams of such encodings are those of the machines' kind "spaces"."""
    a = enc.encode("a")
    assert enc.encode("") == []
    assert enc.decode(a) == "a"
    assert enc.encode(" a") != a
    assert enc.decode(enc.encode(" a")) == " a"
    # No space is put before a special token at the start, nor before text after one.
    s = enc.encode_single_token("<s>")
    assert enc.encode("<s>a", allowed_special="all") == [s, enc.encode_single_token("a")]
    assert enc.encode("a<s>a", allowed_special="all") == [*a, s, enc.encode_single_token("a")]
    assert enc.decode_with_offsets(enc.encode("a b")) == ("a b", [0, 1])


# Refused models


def test_other_models_are_refused_by_name(tmp_path):
    path = write(tmp_path / "m.model", trained(treat_whitespace_as_suffix=True))
    refuses(
        formats.load, path, match="treat_whitespace_as_suffix is not supported"
    )  # fmt: skip
    for number, name in ((3, "word"), (4, "char"), (5, "5")):
        data = model([*BASE, SPACE, ("a", -1.0, 1)], trainer=field(3, number) + field(35, 1))
        refuses(
            formats.load, write(path, data),
            match=f"models of type {name} are not supported: expected bpe or unigram",
        )  # fmt: skip


@pytest.mark.parametrize("said", [b"", field(3, 1), field(1, b"identity")], ids=repr)
def test_missing_settings_have_the_defaults_of_sentencepiece(tmp_path, said):
    """By default, SentencePiece joins runs of spaces: keeping them would give other ids."""
    pieces = [*BASE, SPACE, ("a", -1.0, 1), ("b", -2.0, 1)]
    head = model(pieces, normalizer=None)
    for data in (head, head + field(3, said)):
        theirs = processor(data)
        assert theirs.encode("a  b ") == theirs.encode("a b")
        enc = formats.load(write(tmp_path / "m.model", data))
        for text in ("a  b ", " a", "", "  ", "\u2581 a \u2581"):
            assert enc.encode(text) == theirs.encode(text)


def test_settings_given_twice_are_joined(tmp_path):
    pieces = [*BASE, SPACE, ("a", -1.0, 1), ("b", -2.0, 1)]
    parts = field(4, 0), field(3, 0), field(3, 1)
    data = model(pieces, normalizer=None) + field(3, parts[0]) + field(3, parts[1])
    for made in (data, data + field(3, parts[2])):
        theirs = processor(made)
        enc = formats.load(write(tmp_path / "m.model", made))
        for text in ("a  b ", " a", "", "  "):
            assert enc.encode(text) == theirs.encode(text)


def damaged():
    sound = model([*BASE, SPACE, ("ab", -1.0, 1), ("a", -2.0, 1)])
    one = field(1, field(1, b"a"))
    yield one, "not a SentencePiece model"
    yield sound[:-1], "byte .*: field 3 should have 14 bytes, but the message ends after 13"
    yield b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "but the message ends after 0"
    yield b"\x0a" + b"\xff" * 11, "a number has more than ten bytes"
    yield one + b"\x0b", "unknown kind 3"
    yield one + b"\x00\x00", "0 is not a valid field number"
    yield one + b"\x08\x01", "field 1 of the model must be of kind bytes, not varint"
    yield b"\x0a\x02\x08\x01", "field 1 of piece 0 must be of kind bytes"
    yield b"\x0a\x04\x0a\x02\xff\xff", "piece 0 is not UTF-8"
    yield b"\x0a\x02\x15\x00", "field 2 should have 4 bytes"
    yield b"\x0a\x00", "piece 0, '', must have 1 .* bytes"
    yield model([*BASE, SPACE, ("ab", float("nan"), 1)]), "the score nan"
    yield (
        model([*BASE, SPACE, ("ab", 0.0, 1), ("ab", 1.0, 1)]),
        "piece 261, 'ab', is given twice",
    )
    yield model([*BASE, SPACE, ("ab", 0.0, 5)]), "is unused, which is not supported"
    yield model([*BASE, SPACE, ("ab", 0.0, 77)]), "is of type 77"
    yield model([*BASE, ("<0x0a>", 0.0, 6)]), "has the type of a byte: expected <0x00>"
    yield model(BASE[:-1]), "only 255 of the 256 bytes are pieces"
    yield model([*BASE, ("a b", 0.0, 1)]), "has a space: expected"
    yield model([*BASE, ("a" * 70_000, 0.0, 1)]), "has 70000 characters"
    yield model([*BASE, ("<s> ", 0.0, 3), ("<s>\u2581", 0.0, 3)]), "differ only in"
    yield model([*BASE, ("a", 0.0, 1)]), "a model without the piece '▁' is not supported"
    yield model([("a", -1.0, 1)], trainer=field(3, 1)), "one piece for unknown characters, found 0"
    yield model(BASE, trainer=field(35, 1)), "a model without normal pieces is not supported"
    yield model([*BASE, SPACE], more=field(5, 0)), "escape_whitespaces=false"
    yield (
        model([*BASE, SPACE], more=field(2, b"x")),
        "the normalizer's map is damaged: expected the size",
    )
    yield model([*BASE, SPACE, ("a b", 0.0, 4)]), "has a space: expected"
    yield model(BASE) + field(5, field(2, b"x")), "a denormalizer is not supported"
    yield b"\x0a\x00" * 3_000_000, "piece 0"


@pytest.mark.parametrize(("data", "message"), list(damaged()))
def test_damaged_and_hostile_models(tmp_path, data, message):
    refuses(formats.load, write(tmp_path / "m.model", data), match=message)
