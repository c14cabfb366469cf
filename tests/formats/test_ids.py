"""Ids that are large, that two texts have, that are missing, and what added tokens decode to."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

import streamtok
import streamtok.hf
from streamtok.formats.packed import dumps_packed, loads_packed

from .. import tokenizer_files
from ..conftest import stream_ids
from .reading import both, ids_of

LETTERS = {letter: id for id, letter in enumerate(sorted(ByteLevel.alphabet()))}
PRINTABLE = {chr(code): code - 32 for code in range(32, 127)}
BYTES = {f"<0x{byte:02X}>": 200 + byte for byte in range(256)}
WHITESPACE = {"pre_tokenizer": {"type": "Whitespace"}}
BYTE_LEVEL = {
    part: {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    for part in ("pre_tokenizer", "decoder")
}


def file_of(model: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return tokenizer_files.file_of(model, None, None, None) | parts


def bpe(vocab: dict[str, int], merges: list[str], **more: Any) -> dict[str, Any]:
    none = dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix"))
    model = {"type": "BPE", **none, "end_of_word_suffix": None, "fuse_unk": False}
    return {**model, "byte_fallback": False, "vocab": vocab, "merges": merges, **more}


def added(text: str, **flags: bool) -> dict[str, Any]:
    names = "single_word", "lstrip", "rstrip", "normalized"
    return {"id": 0, "content": text, "special": True, **dict.fromkeys(names, False), **flags}


def word_piece(vocab: dict[str, int]) -> dict[str, Any]:
    return {
        "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 4, "vocab": vocab,
    }  # fmt: skip


def word_level(vocab: dict[str, int]) -> dict[str, Any]:
    return {"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocab}


def unigram(
    vocab: list[list[Any]], unknown: int | None, falls_back: bool = False
) -> dict[str, Any]:
    return {"type": "Unigram", "unk_id": unknown, "vocab": vocab, "byte_fallback": falls_back}


def same(theirs: Tokenizer, enc: streamtok.Encoding, text: str) -> list[int]:
    """The ids, the same by all doors."""
    ids: list[int] = ids_of(theirs)(text)
    for one in enc, pickle.loads(pickle.dumps(enc)), loads_packed(dumps_packed(enc)):
        assert one.encode(text, allowed_special="all") == ids
    assert stream_ids(enc.stream_encoder(allowed_special="all"), [*text]) == ids
    assert enc.encode_to_numpy(text, allowed_special="all").tolist() == ids
    return ids


def streamed(enc: streamtok.Encoding, ids: list[int]) -> str:
    """What a stream decodes, id by id."""
    stream = enc.stream_decoder()
    return "".join(stream.decode([id]) for id in ids) + stream.flush()


MANY = {"a": 0, "b": 1, "##b": 3, "[UNK]": 2}


@pytest.mark.parametrize("id", [70_001, 4_000_000_001])
@pytest.mark.parametrize(
    "file",
    [
        file_of(word_level(MANY | {"ab": 5}), **WHITESPACE),
        file_of(word_piece(MANY | {"ab": 5}), **WHITESPACE),
        file_of(bpe(LETTERS | {"ab": 5}, ["a b"]), **BYTE_LEVEL),
        file_of(bpe(PRINTABLE | BYTES | {"ab": 5}, ["a b"], byte_fallback=True)),
        file_of(bpe(MANY | {"ab": 5, "ab</w>": 6}, ["a b"], end_of_word_suffix="</w>")),
    ],
    ids=["WordLevel", "WordPiece", "bytes", "characters", "symbols"],
)
def test_a_large_id_in_a_small_vocabulary(file: dict[str, Any], id: int) -> None:
    file = json.loads(json.dumps(file))
    file["model"]["vocab"]["ab"] = id
    theirs, enc = both(file)
    ids = same(theirs, enc, "ab a b ab")
    assert id in ids
    assert enc.decode_single_token_bytes(id).strip() == b"ab"
    assert enc.decode([id]) == "ab"
    assert streamed(enc, ids) == enc.decode(ids)
    assert [*map(enc.decode_single_token_bytes, ids)] == enc.decode_tokens_bytes(ids)
    assert enc.max_token_value == id
    for unknown in (id - 1, id + 1):
        with pytest.raises(KeyError):
            enc.decode([unknown])
    if id < 100_000:  # the real `to_str` goes through all ids up to the largest
        tokens = streamtok.hf.Tokenizer.from_str(json.dumps(file))
        assert tokens.encode("ab a").ids == theirs.encode("ab a").ids
        assert tokens.decode(ids) == theirs.decode(ids)


@pytest.mark.parametrize("model", [word_level, word_piece])
def test_two_texts_of_one_id(model: Any) -> None:
    theirs, enc = both(file_of(model(MANY | {"c": 1, "d": 3}), **WHITESPACE))
    ids = same(theirs, enc, "a b c d ab x")
    assert enc.decode(ids[1:3]) == "c c"  # the last one
    assert enc.encode_with_offsets("b c d")[1].tolist() == [[0, 1], [2, 3], [4, 5]]
    tokens = streamtok.hf.Tokenizer.from_str(theirs.to_str())
    assert tokens.decode(ids) == tokens._real.decode(ids)


def test_two_texts_of_one_id_in_merges_are_refused_by_name() -> None:
    for model in (
        bpe(LETTERS | {"ab": 10}, ["a b"]),
        bpe(PRINTABLE | BYTES | {"ab": 10}, ["a b"], byte_fallback=True),
    ):
        with pytest.raises(streamtok.VocabularyError, match="id 10 is given twice: to"):
            both(file_of(model))


def test_a_piece_that_unigram_has_twice() -> None:
    rows = [["a", -1.0], ["b", -2.0], ["ab", -1.5], ["b", -0.1], ["a", -9.0], ["ba", -3.0]]
    theirs, enc = both(file_of(unigram(rows, 0), added_tokens=[added("<x>"), added("ab")]))
    rng = random.Random(2)
    for _ in range(20):
        ids = same(theirs, enc, "".join(rng.choices(["a", "b", "c", "<x>"], k=9)))
        assert enc.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
    assert enc.encode("<x>", allowed_special="all") == [6]  # after all rows


UNKNOWN = [
    file_of(word_level({"a": 0, "b": 1}), **WHITESPACE),
    file_of(word_piece({"a": 0, "b": 1, "##a": 2}), **WHITESPACE),
    file_of(unigram([["a", -1.0], ["b", -2.0], ["ab", -1.5]], None), **WHITESPACE),
    file_of(unigram([["a", -1.0], ["b", -2.0], ["ab", -1.5]], None)),
    file_of(unigram([["a", -1.0], ["b", -2.0], *([text, -9.0] for text in BYTES)], None, True)),
]


@pytest.mark.parametrize("file", UNKNOWN, ids=lambda file: file["model"]["type"])
def test_no_token_for_unknown_text(file: dict[str, Any]) -> None:
    theirs, enc = both(file)
    for known in ("a", "ba" if "WordLevel" not in str(file) else "b", ""):
        same(theirs, enc, known)
    why = "is not in the vocabulary, which has no token for unknown text"
    for text in ("c", "a\u0436", "b" * 700 + "x"):
        with pytest.raises(Exception, match=r"(?i)unk"):
            theirs.encode(text)
        for call in (enc.encode, enc.count, enc.encode_to_numpy, enc.encode_with_offsets):
            with pytest.raises(ValueError, match=why):
                call(text)
        with pytest.raises(ValueError, match=why):
            enc.encode_batch(["a", text, "b"] * 9, num_threads=2)
        with pytest.raises(ValueError, match=why):
            stream_ids(enc.stream_encoder(), [*text])
        tokens = streamtok.hf.Tokenizer.from_str(json.dumps(file))
        with pytest.raises(Exception, match=r"(?i)unk"):
            tokens.encode(text)
    stream = enc.stream_encoder()
    ids = stream.encode("a " if file["pre_tokenizer"] else "a")
    with pytest.raises(ValueError, match=why):
        stream.encode("\u0436 \u0436 a", final=True)
    if file["pre_tokenizer"]:  # or else the space is unknown
        assert ids + stream.encode("b", final=True) == [0, 1]  # the call that raised did nothing


def test_added_tokens_given_twice_and_numbers_with_gaps() -> None:
    model = word_level({"a": 0, "<x>": 9, "<z>": 4, "[UNK]": 2})
    rng = random.Random(3)
    names = ["<x>", "<y>", "<z>", "<w>", "a"]
    for _ in range(12):
        tokens = [
            added(rng.choice(names), special=rng.random() < 0.5, lstrip=rng.random() < 0.3)
            for _ in range(rng.randint(1, 7))
        ]
        theirs, enc = both(file_of(model, **WHITESPACE, added_tokens=tokens))
        for _ in range(5):
            text = "".join(rng.choices([*names, " ", " b"], k=8))
            assert same(theirs, enc, text), tokens


@pytest.mark.parametrize("is_special", [True, False])
@pytest.mark.parametrize("flag", ["single_word", "normalized", None])
def test_an_added_token_that_is_looked_up(flag: str | None, is_special: bool) -> None:
    """With `ignore_merges`, a pre-token becomes it where it is not found as an added token."""
    vocab = {"<unk>": 0, "<s>": 1, **BYTES, "a": 500, "1": 501, "\u2581": 502}
    flags = {"special": is_special} | ({flag: True} if flag else {})
    parts = {
        "normalizer": {"type": "Prepend", "prepend": "\u2581"},
        "pre_tokenizer": {"type": "Digits", "individual_digits": True},
        "added_tokens": [added("<s>", **flags)],
    }
    model = bpe(vocab, [], unk_token="<unk>", byte_fallback=True, ignore_merges=True)
    theirs, enc = both(file_of(model, **parts))
    assert 1 in same(theirs, enc, "1<s>1")
    for text in ("<s>", "a<s>", "<s>a", "11<s>a", "a1<s> 1"):
        same(theirs, enc, text)
    mine = streamtok.hf.Tokenizer.from_str(theirs.to_str())
    for as_text in (True, False):
        mine.encode_special_tokens = theirs.encode_special_tokens = as_text
        for text in ("1<s>1", "<s>", "a<s>"):
            assert mine.encode(text).ids == theirs.encode(text).ids
    if is_special and flag:
        with pytest.raises(streamtok.errors.UnsupportedPromptError):
            enc.encode(streamtok.Prompt("1<s>1"))
    elif is_special:
        assert 1 not in enc.encode(streamtok.Prompt("1<s>1"))


def test_a_control_token_that_lower_case_text_cannot_make() -> None:
    """As in ALBERT's files."""
    pieces = ["<unk>", "[CLS]", "\u2581", "a", "b", "[", "]", "c", "l", "s"]
    parts = {
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {
            "type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True
        },
        "added_tokens": [added("[CLS]")],
    }  # fmt: skip
    _, enc = both(file_of(unigram([[piece, -1.0] for piece in pieces], 0), **parts))
    ids = enc.encode(streamtok.Prompt("a[CLS] b", streamtok.Control("[CLS]")))
    assert [id == 1 for id in ids] == [False] * (len(ids) - 1) + [True]


ADDED = ["\u0111em", "\u00f5", "il\u00d6ve", "\u0120th", "<|x|>", "\u0120zz", "\u00fc\u00fc"]


@pytest.mark.parametrize("is_special", [True, False])
@pytest.mark.parametrize("normalizer", [None, "ByteLevel", "Lowercase"])
@pytest.mark.parametrize("decoder", ["ByteLevel", None])
def test_added_tokens_of_letters_for_bytes(
    is_special: bool, normalizer: str | None, decoder: str | None
) -> None:
    vocab = LETTERS | {"\u0120t": 256, "\u0120th": 257, "\u00fc\u00fc": 258}
    flags = {"special": is_special, "normalized": normalizer is not None}
    parts = {**BYTE_LEVEL, "added_tokens": [added(text, **flags) for text in ADDED]}
    if normalizer:
        parts["normalizer"] = {"type": normalizer}
    if decoder is None:
        parts["decoder"] = None
    if normalizer == "ByteLevel":
        parts["pre_tokenizer"] = None
    theirs, enc = both(file_of(bpe(vocab, ["\u0120 t", "\u0120t h"]), **parts))
    for text in ("\u0111em il\u00d6ve\u00f5 the <|x|>\u00fc\u00fc", "\u65e5 the\u00f5"):
        ids = same(theirs, enc, text)
        tokens = streamtok.hf.Tokenizer.from_str(theirs.to_str())
        for skip in (True, False):
            assert tokens.decode(ids, skip) == theirs.decode(ids, skip)
        if normalizer == "Lowercase":
            assert enc.decode(ids).count("\u0111em") == text.count("\u0111em")
        elif decoder is not None or normalizer is None:
            assert enc.decode(ids) == text
            assert streamed(enc, ids) == text
    if normalizer is None:
        assert enc.decode(enc.encode(" the")) == " the"  # merges make this added token, too


def test_the_decoder_byte_level_after_characters() -> None:
    vocab = {"\u0103": 0, "a": 1, "\u00f5": 2, "\u00f5a": 3} | BYTES
    decoder = {"decoder": BYTE_LEVEL["decoder"]}
    theirs, enc = both(file_of(bpe(vocab, ["\u00f5 a"], byte_fallback=True), **decoder))
    for text in ("\u0103a\r", "\u00f5a\u00f5\u65e5\u0103", "\u0103\u0103 b"):
        ids = same(theirs, enc, text)
        assert enc.decode(ids) == theirs.decode(ids)
    assert enc.decode(enc.encode("\u0103\r")) == "\x03<0x0D>"
